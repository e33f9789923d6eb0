"""The facts that the steps hand on to each other."""

from waybook.agents import DecisionEvent, Event, ExternalEvent, StartEvent, StopEvent


class ReportAsked(StartEvent, frozen=True, kw_only=True):
    """Somebody wants a report on `topic`, sent to these addresses."""

    topic: str
    recipients: tuple[str, ...]


class QueryCompleted(Event, frozen=True, kw_only=True):
    """The figures, as they were when they were asked for."""

    figures: dict[str, int]


class ReportGenerated(Event, frozen=True, kw_only=True):
    """A report lies in the object store under `artifact`; `sha256` says which bytes are meant."""

    topic: str
    recipients: tuple[str, ...]
    artifact: str
    sha256: str


class ReportApproved(DecisionEvent, frozen=True, kw_only=True):
    """A person approved the mail whose parameters have this digest."""

    approval: str
    digest: str
    by: str
    received_at: int


class ReportRejected(DecisionEvent, frozen=True, kw_only=True):
    """A person does not want it to be sent."""

    by: str
    reason: str | None = None


class ReportExpired(DecisionEvent, frozen=True, kw_only=True):
    """Nobody decided in time."""


class ReportRevised(ExternalEvent, frozen=True, kw_only=True):
    """A person wants another report, with this remark in it."""

    remark: str


class ApprovalLapsed(Event, frozen=True, kw_only=True):
    """What was approved does not hold any more, so nothing was sent; `reason` is the engine's word for why."""

    reason: str


class EmailSent(StopEvent, frozen=True, kw_only=True):
    """The mail left. `message_id` names it, None where only a person knew; `sha256` is that of the report in it."""

    message_id: str | None
    sha256: str
