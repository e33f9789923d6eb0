"""What a walker says beside STATE: answers, refusals, rejected and convicted commands, late results."""

import logging
import re
from collections.abc import Mapping, Sequence

import msgspec

from waybook.engine.hooks import BurialReason, CommandBuried, CommandMoved, CommandRefused, Hook, ignore
from waybook.engine.inputs import (
    Accepted,
    ChildAnswer,
    Completed,
    Delivered,
    Diagnostic,
    Failed,
    Input,
    Nothing,
    Outcome,
    Refused,
)
from waybook.engine.ports import Clock, CommandQueue, Delivery, Notes, Replies
from waybook.engine.run import Run
from waybook.events import audit
from waybook.events.command import Answer, Command, StartPayload
from waybook.events.engine import Parent
from waybook.events.errors import InvalidInput
from waybook.events.headers import BURIAL, COMMAND, MSG_ID, REASON, RECEIVED, REPLY, command_of
from waybook.events.subjects import (
    RUN_TOKEN,
    RunKey,
    command_subject,
    digest_token,
    parse_command_subject,
    reused_run_id,
)
from waybook.services.walker.item import Item
from waybook.services.walker.requests import received_at

log = logging.getLogger(__name__)

MOST_TEXT = 1000
"""Characters of a text from outside that a record or an answer repeats."""

_INBOX = re.compile(r"_INBOX[^\s.*>]*(?:\.[^\s.*>]+)+")
"""Where answers may go: a client's inbox. The subject comes from outside, and a walker may publish to STATE."""


class Correspondence:
    """Writes to the ports beside STATE. Every method may be repeated after a PortError."""

    def __init__(
        self, commands: CommandQueue, notes: Notes, replies: Replies, clock: Clock, hook: Hook = ignore
    ) -> None:
        self._commands = commands
        self._notes = notes
        self._replies = replies
        self._clock = clock
        self._hook = hook

    async def answer(self, key: RunKey, item: Item, outcome: Outcome, run: Run | None) -> None:
        """Tells who gave a command what came of it. A refusal stands in AUDITIN first (DESIGN 2, invariant 8)."""
        assert item.delivery is not None and isinstance(item.input, Delivered)
        command = item.input.command
        if isinstance(outcome, Refused) and outcome.reason == "message_id_reused" and item.start is not None:
            await self._restart_elsewhere(item.delivery, key, command, item.start)
            return
        await self.tell(item.delivery, key, command, outcome, run)

    async def tell(self, delivery: Delivery, key: RunKey, command: Command, outcome: Outcome, run: Run | None) -> None:
        """Answers a command by its outcome; `run` is what it was for, as it stands now."""
        if isinstance(outcome, Refused):
            await self.refuse(delivery, key, command, outcome)
            return
        version = run.version if run is not None else None
        answer = Answer(ok=True, command=command.id, run=key.run, version=version)
        if isinstance(outcome, Nothing):
            if outcome.reason == "applied":
                record = {"kind": "diagnostic", "run": str(key), "code": "already_applied", "command": command.id}
                await self._notes.trace(key.tenant, "diagnostic", msgspec.json.encode(record))
            answer = msgspec.structs.replace(answer, already=True, reason=outcome.reason)
        else:
            assert isinstance(outcome, Accepted)
        await self._send(delivery, answer)

    async def refuse(self, delivery: Delivery, key: RunKey, command: Command, refused: Refused) -> None:
        """Records the attempt in AUDITIN, then answers."""
        text = refused.text[:MOST_TEXT]
        record = audit.CommandRefused(
            run=str(key),
            command=command.id,
            verb=command.verb[:MOST_TEXT],
            actor=command.actor[:MOST_TEXT],
            reason=refused.reason,
            text=text,
            at=self._clock.now(),
            issuer=delivery.subject.split(".")[3],
            received_at=delivery.received_at,
        )
        # Named by the message, not by the id that its sender chose: no attempt hides behind another.
        name = f"refused-{delivery.claim.sequence}-{_as_token(command.id)}"
        await self._notes.audit(key.tenant, name, audit.encode_record(record))
        self._hook(CommandRefused(refused.reason))
        await self._send(delivery, Answer(ok=False, command=command.id, run=key.run, reason=refused.reason, text=text))

    async def tell_caller(self, key: RunKey, parent: Parent, command: Command, outcome: str, text: str) -> None:
        """Answers a request for the run that it asked for and that will not be; once, however often it is said."""
        caller = RunKey(key.tenant, parent.agent, parent.run)
        name = f"{command.id}/{outcome}"
        payload = ChildAnswer(parent.request, key.agent, key.run, outcome, error=text[:MOST_TEXT])
        said = Command(
            id=name, verb="answer", issued_at=self._clock.now(), actor=command.actor,
            payload=msgspec.Raw(msgspec.json.encode(payload)),
        )  # fmt: skip
        subject = command_subject(caller, "answer", issuer="relay")
        await self._commands.publish(subject, msgspec.json.encode(said), command=name)

    async def reject(self, delivery: Delivery, error: InvalidInput) -> None:
        """A command that cannot be read or stored is kept whole in DEAD, with the reason."""
        text = str(error)[:MOST_TEXT]
        log.error(
            "command rejected: %s",
            text,
            extra={"action": "command_rejected", "subject": delivery.subject, "error": text},
        )
        await self._bury(delivery, text, "rejected")
        run = delivery.subject.split(".")[6:7]
        command = command_of(delivery.headers) or ""
        answer = Answer(ok=False, command=command, run="".join(run), reason="invalid_input", text=text)
        await self._send(delivery, answer)

    async def convict(self, key: RunKey, command: str, delivery: Delivery, reason: str) -> None:
        """A command that killed its workers too often stands in DEAD."""
        log.error(
            "command convicted: %s", reason, extra={"action": "command_convicted", "run": str(key), "command": command}
        )
        await self._bury(delivery, reason, "convicted")
        await self._send(delivery, Answer(ok=False, command=command, run=key.run, reason="convicted", text=reason))

    async def give_up(self, delivery: Delivery, text: str) -> None:
        """A command that was delivered again and again and never decided stands in DEAD as it came: an alarm."""
        log.critical("command given up: %s", text, extra={"action": "command_undelivered", "subject": delivery.subject})
        await self._bury(delivery, text, "undelivered")
        command = command_of(delivery.headers) or ""
        run = "".join(delivery.subject.split(".")[6:7])
        await self._send(delivery, Answer(ok=False, command=command, run=run, reason="undelivered", text=text))

    async def forward(self, delivery: Delivery, command: str, lane: str) -> None:
        """Publishes a command under the lane of its run's definition; the same bytes, so the same command.

        Its message id names the message that is moved as well: within the duplicate window the command's own id would
        be taken for a repetition and dropped, while a move that is repeated after a crash has to be one.
        """
        subject = parse_command_subject(delivery.subject)
        first = str(received_at(delivery, subject))
        kept = {name: value for name, value in delivery.headers.items() if not name.startswith("Nats-")}
        await self._commands.publish(
            command_subject(
                subject.key, subject.verb, issuer=subject.issuer, command_class=subject.command_class, lane=lane
            ),
            delivery.payload,
            command=f"{command}@{lane}.{delivery.claim.sequence}",
            headers={**_as_lines(kept), COMMAND: command, RECEIVED: first},
        )
        self._hook(CommandMoved())
        log.info(
            "command moved to the lane of its run",
            extra={"action": "command_forwarded", "run": str(subject.key), "command": command, "lane": lane},
        )

    async def late(self, key: RunKey, outcome: Refused, result: Input, run: Run | None) -> None:
        """A result that came too late is refused; TRACE keeps a note (DESIGN 2, invariant 4)."""
        record: dict[str, object] = {"kind": "late_result", "run": str(key)}
        record |= {"reason": outcome.reason, "text": outcome.text}
        if run is not None and run.ended and isinstance(result, Completed | Failed):
            action = run.actions.get(result.action)
            outputs = [o.event for o in result.outputs] if isinstance(result, Completed) else []
            record |= {"code": "late_event_discarded", "because": "run_finished", "events": outputs}
            record["step"] = action.step if action is not None else ""
        await self._notes.trace(key.tenant, "late", msgspec.json.encode(record))

    async def remark(self, key: RunKey, diagnostics: Sequence[Diagnostic]) -> None:
        """Remarks on a decision, for TRACE."""
        for one in diagnostics:
            log.info("%s", one.text, extra={"action": "run_diagnostic", "run": str(key), "code": one.code})
            record = {"kind": "diagnostic", "run": str(key), "code": one.code, "text": one.text, "events": one.events}
            await self._notes.trace(key.tenant, "diagnostic", msgspec.json.encode(record))

    async def _restart_elsewhere(self, delivery: Delivery, key: RunKey, command: Command, start: StartPayload) -> None:
        """Another content under a known Message-ID is a message of its own, never approved automatically (DESIGN 3)."""
        run = reused_run_id(key.tenant, start.mailbox or "", start.id or "", start.content or "")
        elsewhere = RunKey(key.tenant, key.agent, run)
        payload = msgspec.structs.replace(start, flags=(*start.flags, "message_id_reused"))
        moved = msgspec.structs.replace(
            command, id=f"{command.id}-reused", payload=msgspec.Raw(msgspec.json.encode(payload))
        )
        issuer = parse_command_subject(delivery.subject).issuer
        reply = delivery.headers.get(REPLY)
        await self._commands.publish(
            command_subject(elsewhere, "start", issuer=issuer),
            msgspec.json.encode(moved),
            command=moved.id,
            headers={REPLY: reply} if reply is not None else {},
        )

    async def _bury(self, delivery: Delivery, reason: str, kind: BurialReason) -> None:
        headers = {**_as_lines(delivery.headers), REASON: _as_line(reason)[:500], BURIAL: kind}
        if (command := command_of(headers)) is not None:
            headers[MSG_ID] = command
        await self._notes.bury(delivery.subject, delivery.payload, headers)
        self._hook(CommandBuried(kind))

    async def _send(self, delivery: Delivery, answer: Answer) -> None:
        reply = delivery.headers.get(REPLY)
        if reply is None:
            return
        if not _INBOX.fullmatch(reply):
            log.warning(
                "an answer may go to an inbox only",
                extra={"action": "reply_subject_refused", "subject": reply, "command": answer.command},
            )
            return
        await self._replies.answer(reply, msgspec.json.encode(answer))


def _as_token(command: str) -> str:
    """A command id as a token of a subject."""
    return command if RUN_TOKEN.fullmatch(command) else digest_token(command)


def _as_lines(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: _as_line(value) for name, value in headers.items() if name.isascii() and name.isprintable()}


def _as_line(text: str) -> str:
    """One line that a message header may hold."""
    return " ".join(text.split()).encode("ascii", "replace").decode("ascii")
