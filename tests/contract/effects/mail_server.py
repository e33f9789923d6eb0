"""A mail server that keeps what it takes, and fails in the ways that servers fail; and its mailbox over IMAP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Literal, cast

from aiosmtpd.smtp import SMTP, Envelope, Session

Fault = Literal["none", "stalls", "drop_before", "drop_after", "late", "451", "554"]


class MailServer:
    """`taken` holds every mail that the server answers for, in order, whatever its client heard.

    `message_ids` are theirs. They are kept, since the SMTP library looks at each attribute at each connection, and a
    property that parsed them all would make thousands of mails slower and slower.
    """

    def __init__(self) -> None:
        self.taken: list[EmailMessage] = []
        self.message_ids: list[str] = []
        self.recipients: list[list[str]] = []
        self.fault: Fault = "none"
        self.refused: str | None = None
        self.late_s = 0.3
        self.port = 0
        self.imap_port = 0
        self.imap_answers = True

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """A recipient that is not taken, or about whom the server says nothing for a while."""
        if self.fault == "stalls":
            self.fault = "none"
            await asyncio.sleep(self.late_s)
        if address == self.refused:
            return "550 nobody of that name"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """The dot was read."""
        fault, self.fault = self.fault, "none"
        if fault in ("451", "554"):
            return f"{fault} not now"
        if fault != "drop_before":
            assert isinstance(envelope.content, bytes)
            mail = message_from_bytes(envelope.content, policy=policy.default)
            self.taken.append(mail)
            self.message_ids.append(str(mail["Message-ID"]))
            self.recipients.append(list(envelope.rcpt_tos))
        if fault in ("drop_before", "drop_after"):
            cast(asyncio.Transport, server.transport).abort()
        if fault == "late":
            await asyncio.sleep(self.late_s)
        return "250 queued"

    async def imap(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """As much of IMAP as a search needs."""
        if not self.imap_answers:
            writer.close()
            return
        writer.write(b"* OK ready\r\n")
        try:
            while line := (await reader.readline()).decode():
                tag, _, rest = line.strip().partition(" ")
                writer.write(self._imap_answer(tag, rest).encode())
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    def _imap_answer(self, tag: str, rest: str) -> str:
        verb = rest.partition(" ")[0].upper()
        if verb == "CAPABILITY":
            return f"* CAPABILITY IMAP4rev1\r\n{tag} OK done\r\n"
        if verb == "LOGIN" and "wrong" in rest:
            return f"{tag} NO wrong password\r\n"
        if verb == "EXAMINE":
            return f"* {len(self.taken)} EXISTS\r\n{tag} OK [READ-ONLY]\r\n"
        if verb == "SEARCH":
            found = [str(n) for n, known in enumerate(self.message_ids, 1) if known in rest]
            return f"* SEARCH {' '.join(found)}\r\n{tag} OK done\r\n"
        return f"* BYE\r\n{tag} OK done\r\n" if verb == "LOGOUT" else f"{tag} OK done\r\n"


@asynccontextmanager
async def mail_server(server: MailServer) -> AsyncIterator[MailServer]:
    """Serves SMTP and IMAP on free ports of loopback for the time of the block."""
    loop = asyncio.get_running_loop()

    def session() -> Any:
        return SMTP(server, loop=loop, hostname="mx.test", enable_SMTPUTF8=False)

    smtp = await loop.create_server(session, "127.0.0.1", 0)
    imap = await asyncio.start_server(server.imap, "127.0.0.1", 0)
    async with smtp, imap:
        server.port = smtp.sockets[0].getsockname()[1]
        server.imap_port = imap.sockets[0].getsockname()[1]
        yield server


@asynccontextmanager
async def hangs_up_within_the_mail() -> AsyncIterator[int]:
    """A server that drops the connection before it has read the whole mail; the block gets its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mx.test\r\n")
        while line := await reader.readline():
            if line.startswith(b"DATA"):
                writer.write(b"354 go on\r\n")
                await reader.readexactly(1000)
                writer.transport.abort()
                return
            writer.write(b"250 OK\r\n")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
