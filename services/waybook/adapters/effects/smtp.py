"""Sending a mail: before the final dot it surely did not leave, between the dot and the answer nobody knows."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, cast

from aiosmtplib import SMTP, SMTPException, SMTPResponseException
from aiosmtplib.protocol import SMTPProtocol

from waybook.adapters.effects.journal import Journal, JournalUnavailable
from waybook.adapters.effects.mail import Mail, mail_of
from waybook.agents.effects import Deadline, Done, EffectCall, NotDone, NotThere, Unsure
from waybook.engine.intents import CALL_MS
from waybook.engine.ports import Objects, PortError
from waybook.events.errors import InvalidInput

SETTLE_MS = 600_000
"""A server waits so long for the rest of a mail, so a dot that is on its way may still be taken (RFC 5321, 4.5.3.2)."""

QUIT_S = 2.0
DRAIN_S = 0.01
START_INPUT, COMPLETED = 354, 250
_DOT_LINE = re.compile(rb"^\.", re.MULTILINE)

Tls = Literal["starttls", "implicit", "none"]


class SmtpSend:
    """Sends mails by one server. For the parameters see `waybook.adapters.effects.mail`.

    The Message-ID is made of the operation's key, so a mail that left can be found again, and a receiver that drops
    repetitions sees one. All recipients are taken, or nothing is sent. `sender` is the address of the envelope, and of
    the mail where it names none.

    `journal`: where the server keeps what it sent; without one an unknown outcome is for a person. Nothing is undone.
    """

    def __init__(
        self,
        host: str,
        port: int = 587,
        *,
        sender: str,
        username: str | None = None,
        password: str | None = None,
        tls: Tls = "starttls",
        journal: Journal | None = None,
        objects: Objects | None = None,
        settle_ms: int = SETTLE_MS,
        call_ms: int = CALL_MS,
    ) -> None:
        self.call_ms = call_ms
        self.settle_ms = settle_ms
        self._host = host
        self._port = port
        self._sender = sender
        self._username = username
        self._password = password
        self._tls = tls
        self._journal = journal
        self._objects = objects

    @property
    def find_is_authoritative(self) -> bool:
        """See EffectAdapter."""
        return self._journal is not None and self._journal.is_complete

    async def call(self, call: EffectCall, deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        try:
            mail = await mail_of(call, self._sender, self._objects)
        except InvalidInput as error:
            return NotDone(str(error), retryable=False)
        except PortError as error:
            return NotDone(str(error))
        client = SMTP(
            hostname=self._host,
            port=self._port,
            timeout=max(0.001, deadline.remaining_s),
            use_tls=self._tls == "implicit",
            start_tls=self._tls == "starttls",
            username=self._username,
            password=self._password,
        )
        try:
            await client.connect()
            answer = await _send(client, mail, deadline)
        except (SMTPException, OSError) as error:  # of all that comes before the dot
            code = error.code if isinstance(error, SMTPResponseException) else 0
            return NotDone(f"{type(error).__name__}: {error}", retryable=code < 500)
        finally:
            await _leave(client)
        return answer

    async def find(self, call: EffectCall) -> Done | NotThere | Unsure:
        """See EffectAdapter."""
        if self._journal is None or call.undoes is not None:
            return Unsure("there is no journal of sent mails to look into", again=False)
        try:
            mail = await mail_of(call, self._sender, self._objects)
            there = await self._journal.holds(mail.message_id)
        except InvalidInput as error:
            return Unsure(str(error), again=False)
        except (JournalUnavailable, PortError) as error:
            return Unsure(str(error))
        evidence = {"message_id": mail.message_id}
        return Done(evidence) if there else NotThere(evidence)

    async def undo(self, call: EffectCall, evidence: Mapping[str, Any], deadline: Deadline) -> Done | NotDone | Unsure:
        """See EffectAdapter."""
        return NotDone("a mail that left cannot be taken back", retryable=False)


async def _send(client: SMTP, mail: Mail, deadline: Deadline) -> Done | NotDone | Unsure:
    """Everything but the dot, then the dot. Raises SMTPException and OSError only for what comes before it."""
    await client.mail(mail.sender)
    for recipient in mail.recipients:
        await client.rcpt(recipient)
    ready = await client.execute_command(b"DATA")
    if ready.code != START_INPUT:
        return NotDone(f"the server answered {ready.code} {ready.message}", retryable=ready.code < 500)
    protocol = client.protocol
    assert protocol is not None
    protocol.write(_DOT_LINE.sub(b"..", mail.data) + (b"" if mail.data.endswith(b"\r\n") else b"\r\n"))
    await _drained(protocol, deadline)
    deadline.check()
    if not protocol.is_connected:
        return NotDone("the connection was lost before the end of the mail")
    try:
        said = await client.execute_command(b".", timeout=max(0.001, deadline.remaining_s))
    except (SMTPException, OSError) as error:
        return Unsure(f"no answer after the end of the mail: {error}", {"message_id": mail.message_id})
    evidence = {"message_id": mail.message_id, "code": said.code, "answer": said.message[:500]}
    if said.code == COMPLETED:
        return Done(evidence)
    if 400 <= said.code < 600:
        return NotDone(f"the server answered {said.code} {said.message}", evidence, retryable=said.code < 500)
    return Unsure(f"the server answered {said.code} {said.message}", evidence)


async def _drained(protocol: SMTPProtocol, deadline: Deadline) -> None:
    """Waits until the mail's bytes were handed to the system, so that the dot does not wait behind them."""
    while protocol.is_connected:
        if cast(asyncio.WriteTransport, protocol.transport).get_write_buffer_size() == 0:
            return
        deadline.check()
        await asyncio.sleep(DRAIN_S)


async def _leave(client: SMTP) -> None:
    """A courtesy; what came of the mail is known by now."""
    if client.is_connected:
        with suppress(SMTPException, OSError):
            await client.quit(timeout=QUIT_S)
    client.close()
