"""What a check found."""

import msgspec

from waybook.adapters.nats.topology.durability import SyncProof


class Finding(msgspec.Struct, frozen=True):
    """One departure of a server from the declaration.

    `name` is `STREAM`, `STREAM/CONSUMER` or `server`; `breaks` says what it breaks, None when it is harmless.
    """

    name: str
    field: str
    declared: str
    stored: str
    breaks: str | None = None

    def __str__(self) -> str:
        text = f"{self.name}: {self.field} is {self.stored}, declared {self.declared}"
        return f"{text}: {self.breaks}" if self.breaks else text


class Report(msgspec.Struct, frozen=True):
    """The result of `check`. `checked` counts the streams, buckets and consumers that were compared."""

    server: str
    checked: int
    findings: tuple[Finding, ...]
    sync: SyncProof

    @property
    def breaking(self) -> list[Finding]:
        """The findings that break an invariant."""
        return [finding for finding in self.findings if finding.breaks]

    @property
    def ok(self) -> bool:
        """No invariant is broken and the server is proven to sync always."""
        return not self.breaking and self.sync.verdict == "proven"

    def refusal(self) -> str | None:
        """Why a role must not start: broken invariants, one a line. None when it may.

        Says nothing of `sync`: whether an unproven or refuted sync is acceptable is the caller's decision.
        """
        return "\n".join(str(finding) for finding in self.breaking) or None
