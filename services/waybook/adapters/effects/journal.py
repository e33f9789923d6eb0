"""Where sent mails can be found again: a mailbox that the mail server itself fills."""

import asyncio
import imaplib
import ssl
from contextlib import suppress
from typing import Protocol

from waybook.events.errors import InvalidInput, RetryableError

PORT, TLS_PORT = 143, 993


class JournalUnavailable(RetryableError):
    """The journal of sent mails does not answer."""


class Journal(Protocol):
    """Knows which mails left. `is_complete`: a mail that it does not hold never left."""

    @property
    def is_complete(self) -> bool: ...

    async def holds(self, message_id: str) -> bool:
        """Whether a mail with this Message-ID, angle brackets included, left. Raises JournalUnavailable."""
        ...


class ImapJournal:
    """A mailbox over IMAP, searched by Message-ID.

    `mailbox`: where the server keeps what it sent. It has to be filled by the server, in one step with accepting the
    mail, for `is_complete` to be true: then a mail that is not there did not leave. TLS by default; `tls` False is for
    servers on the same machine.
    """

    def __init__(
        self,
        host: str,
        port: int | None = None,
        *,
        username: str,
        password: str,
        mailbox: str = "Sent",
        is_complete: bool = False,
        tls: bool = True,
        timeout_s: float = 20.0,
    ) -> None:
        self.is_complete = is_complete
        self._host = host
        self._port = port or (TLS_PORT if tls else PORT)
        self._username = username
        self._password = password
        self._mailbox = mailbox
        self._tls = tls
        self._timeout_s = timeout_s

    async def holds(self, message_id: str) -> bool:
        """See Journal."""
        if '"' in message_id or not message_id.isascii() or not message_id.isprintable():
            raise InvalidInput(f"the Message-ID {message_id!r} cannot be searched for")
        try:
            return await asyncio.to_thread(self._search, message_id)
        except (imaplib.IMAP4.error, OSError) as error:
            raise JournalUnavailable(f"the journal at {self._host} does not answer: {error}") from error

    def _search(self, message_id: str) -> bool:
        client = self._connect()
        try:
            client.login(self._username, self._password)
            _check(client.select(f'"{self._mailbox}"', readonly=True))
            (found, *_) = _check(client.search(None, "HEADER", "Message-ID", f'"{message_id}"'))
            return bool(found)
        finally:
            with suppress(imaplib.IMAP4.error, OSError):
                client.logout()

    def _connect(self) -> imaplib.IMAP4:
        if not self._tls:
            return imaplib.IMAP4(self._host, self._port, self._timeout_s)
        context = ssl.create_default_context()
        return imaplib.IMAP4_SSL(self._host, self._port, ssl_context=context, timeout=self._timeout_s)


def _check(answer: tuple[str, list[bytes | None]]) -> list[bytes | None]:
    status, data = answer
    if status != "OK":
        raise imaplib.IMAP4.error(f"the server answered {status}: {data}")
    return data
