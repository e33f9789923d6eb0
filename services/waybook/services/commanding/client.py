"""Gives one command and waits for its answer."""

import asyncio
import json
import re
from uuid import uuid4

import msgspec

from waybook.adapters.nats.connection import Connection
from waybook.engine.ports import CTL_ANY, Clock, CommandQueue, PortMisconfigured, StateLog
from waybook.events.command import Answer, Command
from waybook.events.errors import RetryableError, TerminalError
from waybook.events.headers import CAUSATION, REPLY
from waybook.events.subjects import Issuer, RunKey, command_subject, digest_token, state_subject

VALID_MS = 60_000
"""How long a person's command may wait for its decision; a yes of long ago is not carried out behind their back."""

PATIENCE_S = 20.0
LOOK_S = 2.5
"""How long nobody may be seen taking commands before it is said that nobody does."""
POLL_S = 0.1

INTENTION_DIGITS = 10


class NoWalker(RetryableError):
    """Nobody takes commands here. Nothing was given."""


class NoAnswer(RetryableError):
    """A command was given and not answered in time: what came of it is unknown."""


class CommandIdTaken(TerminalError):
    """The command's id was given before for something else. Nothing was given."""


class CommandClient:
    """Gives commands as `issuer`; who uses it has checked who the actor is.

    `patience_s`: how long an answer is waited for; `valid_ms`: how long the command may wait for its decision.
    """

    def __init__(
        self,
        connection: Connection,
        commands: CommandQueue,
        state: StateLog,
        clock: Clock,
        *,
        issuer: Issuer,
        patience_s: float = PATIENCE_S,
        valid_ms: int = VALID_MS,
    ) -> None:
        self._connection = connection
        self._commands = commands
        self._state = state
        self._clock = clock
        self._issuer: Issuer = issuer
        self._patience_s = patience_s
        self._valid_ms = valid_ms

    async def give(
        self,
        key: RunKey,
        verb: str,
        payload: object = None,
        *,
        actor: str,
        command: str | None = None,
        intention: object = None,
        if_version: int | None = None,
    ) -> Answer:
        """The walker's answer, a refusal included. `command` names the intention, by the same name for a repetition.

        The id on the wire names what is asked for as well: by its name alone a second, other command would be taken
        for the first and dropped, by the server within its window and by the run for ever. `intention` is what was
        asked for where `payload` says more than that, such as what was found meanwhile.

        Raises NoWalker when nobody takes commands, CommandIdTaken when the run knows the name for something else,
        NoAnswer when no answer came in time, StreamFull, PortUnavailable, PortMisconfigured.
        """
        await self._find_walker()
        said_name = command or uuid4().hex
        asked = msgspec.json.encode((str(key), verb, payload if intention is None else intention, actor))
        name = f"{said_name}.{digest_token(asked, length=INTENTION_DIGITS)}"
        if command is not None:
            await self._refuse_another(key, command, name)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def receive(subject: bytes, reply: bytes, headers: bytes | None, payload: bytes) -> None:
            said = msgspec.json.decode(payload, type=Answer)
            if said.command == name and not answer.done():
                answer.set_result(said)

        inbox = self._connection.inbox()
        self._connection.subscribe(inbox, receive)
        try:
            await self._publish(key, verb, payload, actor, name, if_version, inbox)
            async with asyncio.timeout(self._patience_s):
                return await answer
        except TimeoutError as error:
            applied = await self._applied(key, name)
            if applied is not None:
                return applied
            raise NoAnswer(
                f"no answer within {self._patience_s:g} s: whether it was done is not known; the command is not carried "
                f"out any more {self._valid_ms / 1000:g} s after it was given; ask again with --command-id {said_name}"
            ) from error
        finally:
            self._connection.unsubscribe(inbox)

    async def _publish(
        self, key: RunKey, verb: str, payload: object, actor: str, name: str, if_version: int | None, inbox: str
    ) -> None:
        now = self._clock.now()
        body = Command(
            id=name,
            verb=verb,
            issued_at=now,
            actor=actor,
            payload=msgspec.Raw(msgspec.json.encode(payload)),
            expires_at=now + self._valid_ms,
            if_version=if_version,
        )
        subject = command_subject(key, verb, issuer=self._issuer)
        await self._commands.publish(subject, msgspec.json.encode(body), command=name, headers={REPLY: inbox})

    async def _find_walker(self) -> None:
        """Between two pulls of a walker none waits for a moment. Raises NoWalker."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LOOK_S
        while not await self._is_taken():
            if loop.time() >= end:
                raise NoWalker(
                    "no walker takes commands here, so nothing was given; start `waybook up` (or `waybook serve walker`) "
                    "and give the command again"
                )
            await asyncio.sleep(POLL_S)

    async def _is_taken(self) -> bool:
        try:
            return await self._commands.is_taken(CTL_ANY.name)
        except PortMisconfigured:
            return False  # no walker was ever here to make it

    async def _applied(self, key: RunKey, name: str) -> Answer | None:
        """What STATE says of a command whose answer did not come: applied, or nothing yet."""
        mention = msgspec.json.encode(name)
        async for record in self._state.history(state_subject(key)):
            if record.headers.get(CAUSATION) == name or mention in record.payload:
                return Answer(ok=True, command=name, run=key.run, already=True, reason="applied")
        return None

    async def _refuse_another(self, key: RunKey, given: str, name: str) -> None:
        """Raises CommandIdTaken where the run's log has the id for another intention."""
        known = re.compile(re.escape(json.dumps(given)[1:-1].encode()) + rb"\.([a-z2-7]{%d})\"" % INTENTION_DIGITS)
        async for record in self._state.history(state_subject(key)):
            cause = json.dumps(record.headers.get(CAUSATION, "")).encode()
            for digits in known.findall(cause + record.payload):
                if not name.endswith(digits.decode()):
                    raise CommandIdTaken(
                        f"the command id {given} was given before for something else; an id repeats one command, "
                        "leave it away to give a new one"
                    )
