"""Mails in the read models of a real PostgreSQL, as a projector would have put them there."""

from collections.abc import Sequence

import msgspec
from tests.unit.projections import histories as h

from waybook.events import engine as e
from waybook.events.commit import Commit
from waybook.events.subjects import RunKey
from waybook.projections.generation import ensure_live
from waybook.projections.log import Batch
from waybook.projections.mark import Mark
from waybook.projections.progress import Entry
from waybook.projections.session import connect_writer
from waybook.projections.tables import Tables


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A mail and how far it came; `text` None: the scan did not let it pass."""

    run: str
    sender: str = "Ann <ann@example.org>"
    subject: str = "An invoice"
    text: str | None = "Where is my invoice?"
    thread: str = "t1"
    at: int = h.BEGAN_AT
    reply: str | None = None
    flags: dict[str, str] = {}
    released: bool = False
    tenant: str = "main"

    def commits(self) -> list[Commit]:
        mail = {"from": self.sender, "subject": self.subject}
        first = h.commit(
            1,
            e.RunStarted(agent="inbox", definition="d1", state="received", thread=self.thread),
            e.EventPublished(event="MailReceived", schema=1, payload=msgspec.Raw(msgspec.json.encode(mail))),
            h.moved("received", "security_check"),
            h.began("1.3", "security_scan"),
            at=self.at,
        )
        fields: dict[str, object] = {"security_flags": self.flags}
        if self.released:
            fields["released_by"] = "ann"
        if self.text is None:
            outcome, state = h.published("ThreatFound", "1.3", flags=self.flags), "quarantined"
        else:
            outcome, state = h.published("ScanPassed", "1.3", flags=self.flags, text=self.text), "classifying"
        moved = h.moved("security_check", state, **fields)
        commits = [first, h.commit(2, h.completed("1.3", 1), outcome, moved, at=self.at + 1)]
        if self.reply is not None:
            commits.append(h.commit(3, h.moved(state, "sent", draft_response=self.reply), at=self.at + 2))
        return commits


async def write(database_url: str, mails: Sequence[Written]) -> None:
    """Puts mails into the live generation of an empty database, which is made."""
    connection = await connect_writer(database_url)
    try:
        tables = Tables(connection, await ensure_live(connection, "waybook"), "STATE_TEST")
        mark = await tables.open()
        entries = [(RunKey(m.tenant, "inbox", m.run), commit) for m in mails for commit in m.commits()]
        numbered = [Entry(mark.sequence + n, key, commit) for n, (key, commit) in enumerate(entries, 1)]
        last = Mark(mark.sequence + len(numbered))
        await tables.apply(Batch(numbered, last, len(numbered), b""), mark)
    finally:
        await connection.close()
