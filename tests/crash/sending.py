"""An agent that sends one thing, with another text at every attempt, as a model would write it."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from waybook.adapters.effects.http import HttpCall
from waybook.adapters.effects.journal import ImapJournal
from waybook.adapters.effects.smtp import SmtpSend
from waybook.agents import Agent, Effects, RetryPolicy, StartEvent, StepContext, StopEvent, step
from waybook.agents.effects import EffectAdapter

CALL_MS = 4_000


class Outside(msgspec.Struct, frozen=True):
    """Where the other sides are; a mail server without `imap_port` has no journal."""

    url: str = ""
    smtp_port: int = 0
    imap_port: int | None = None


class Wanted(StartEvent, frozen=True, kw_only=True):
    """Something is to be sent by `way`."""

    way: str


class Sent(StopEvent, frozen=True, kw_only=True):
    """It left."""

    changed: bool


class Sending(Agent):
    """One step, one side effect."""

    name: ClassVar[str] = "sending"

    @step(retry=RetryPolicy(max_failures=9))
    async def send(self, wanted: Wanted, context: StepContext, effects: Effects) -> Sent:
        """A ticket or a mail."""
        text = f"text of attempt {context.attempt}"
        if wanted.way == "ticket":
            receipt = await effects.run("ticket", {"path": "/tickets", "json": {"text": text}}, key="reply")
        else:
            receipt = await effects.run("mail", {"to": ["ana@customer.example"], "text": text}, key="reply")
        return Sent(changed=receipt.changed)


def adapters(outside: Outside) -> Mapping[str, EffectAdapter]:
    """The other sides as a worker reaches them."""
    journal = None
    if outside.imap_port is not None:
        journal = ImapJournal(
            "127.0.0.1", outside.imap_port, username="u", password="p", is_complete=True, tls=False, timeout_s=20
        )
    return {
        "ticket": HttpCall(
            outside.url, find_path="/tickets/{key}", find_is_authoritative=True, settle_ms=0, call_ms=CALL_MS
        ),
        "mail": SmtpSend(
            "127.0.0.1", outside.smtp_port, sender="help@shop.example", tls="none", journal=journal, settle_ms=0,
            call_ms=CALL_MS,
        ),
    }  # fmt: skip
