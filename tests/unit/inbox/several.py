"""A desk for mails that ask for several things: scripted models, the sending side, and one stage for all of it."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType

import msgspec
from tests.unit.inbox.mails import mail

from waybook.agents.effects import Deadline, Done, EffectCall, NotDone, Unsure
from waybook.agents.model import ModelAnswer, ModelRequest, ModelUnavailable
from waybook.engine.ports import Clock
from waybook.events.engine import TokenUsage
from waybook.inbox.agent import Inbox
from waybook.inbox.brakes import Brakes, StandingBrakes
from waybook.inbox.classify import Intent
from waybook.inbox.events import MailReceived
from waybook.inbox.knowledge import CombinedKnowledge, Knowledge
from waybook.inbox.route import RouteSettings
from waybook.inbox.settings import InboxSettings, Models
from waybook.services.bootstrap.clock import SystemClock
from waybook.testing.kit import OtherSide
from waybook.testing.rehearsal import Stage, rehearsal

BILLING = Intent(category="billing", priority="normal", sentiment="neutral", intent="request", confidence=0.9)
OPENING = Intent(category="support", priority="normal", sentiment="neutral", intent="question", confidence=0.95)
ANGER = Intent(category="complaint", priority="normal", sentiment="negative", intent="complaint", confidence=0.99)

BY_PEOPLE = RouteSettings()
UNATTENDED = RouteSettings(auto_reply=True, shadow=False)

_PART = re.compile(r"Write part (\d) of the reply")
TEXTS = {1: "Your bill is fine.", 2: "The shop opens at nine.", 3: "We are sorry.", 4: "The goods are on their way."}
USAGE = TokenUsage(10, 5, 15)


class Drafter:
    """A model in all roles. `broken`: parts whose drafter fails. `edition` stands behind each text from 2 on.

    `together`: who drafts waits there for the others.
    """

    name = "scripted"

    def __init__(self, intents: Sequence[Intent]) -> None:
        self._intents = intents
        self.broken: set[int] = set()
        self.edition = 1
        self.scores: dict[str, float] = {}
        self.asked: list[tuple[str, int]] = []
        self.together: asyncio.Barrier | None = None

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """The scripted answer. Raises ModelUnavailable for a broken part."""
        found = _PART.search(request.instructions)
        part = int(found.group(1)) if found is not None else 1
        self.asked.append((request.role, part))
        if request.role == "classify":
            return self._data({"intents": [msgspec.to_builtins(i) for i in self._intents], "language": "en"})
        if request.role == "self_check":
            score = next((s for text, s in self.scores.items() if text in request.text("draft")), 0.9)
            return self._data({"score": score, "complete": True, "grounded": True})
        if request.role == "draft":
            if self.together is not None:
                async with asyncio.timeout(10):
                    await self.together.wait()
            if part in self.broken:
                raise ModelUnavailable(f"the drafter of part {part} is away")
            edition = f" ({self.edition})" if self.edition > 1 else ""
            return ModelAnswer(model=self.name, text=TEXTS[part] + edition, usage=USAGE)
        return self._data(
            {"isInjection": False, "is_injection": False, "confidence": 0.0, "facts": [], "questions": []}
        )

    def _data(self, data: object) -> ModelAnswer:
        return ModelAnswer(model=self.name, data=data, usage=USAGE)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelAnswer]:
        """The whole answer."""
        yield await self.ask(request)

    def drafts(self) -> list[int]:
        """The parts that were asked for, in order."""
        return [part for role, part in self.asked if role == "draft"]


class MailServer(OtherSide):
    """Where replies arrive. `refuses`: the next one is refused for good."""

    refuses = False

    async def call(self, call: EffectCall, deadline: Deadline) -> Done | NotDone | Unsure:
        """It arrives, unless it is refused."""
        if self.refuses:
            self.refuses = False
            return NotDone("no such mailbox", retryable=False)
        return await super().call(call, deadline)


class Desk(msgspec.Struct):
    """What a test looks at."""

    stage: Stage
    model: Drafter
    mails: MailServer
    run: str

    @property
    def fields(self) -> dict[str, object]:
        """The companion fields of the run."""
        return self.stage.run(self.run).fields

    @property
    def state(self) -> str:
        return self.stage.state(self.run)

    def sent(self) -> list[str]:
        """The texts that left."""
        return [params["text"] for params in self.mails.params.values()]


@asynccontextmanager
async def desk(
    *intents: Intent,
    route: RouteSettings = BY_PEOPLE,
    broken: Sequence[int] = (),
    scores: Mapping[str, float] = MappingProxyType({}),
    together: bool = False,
    text: str = "Please check my bill. Also, when does the shop open?",
) -> AsyncIterator[Desk]:
    """A mail that asks for these things has come in and moved as far as it goes by itself."""
    model = Drafter(intents)
    model.broken, model.scores = set(broken), dict(scores)
    model.together = asyncio.Barrier(len(intents)) if together else None
    side = MailServer(evidence={"message_id": "<1@ours.example>"})
    async with rehearsal(Inbox, provides=provided(model, route), effects={"mail": side}) as stage:
        run = await stage.start(received(text), thread="thread-1")
        yield Desk(stage=stage, model=model, mails=side, run=run)


def received(text: str) -> MailReceived:
    """The start event of a mail with this text."""
    parsed = mail(text=text)
    return MailReceived(sender=parsed.from_text, subject=parsed.subject, mail=parsed, received_at=1_800_000_000_000)


def provided(model: Drafter, route: RouteSettings = BY_PEOPLE) -> dict[type, object]:
    """What the steps ask for."""
    return {
        Models: Models.all_by(model, guard=model),
        Knowledge: CombinedKnowledge(),
        InboxSettings: InboxSettings(route=route),
        Brakes: StandingBrakes(shadow=route.shadow),
        Clock: SystemClock(),
    }
