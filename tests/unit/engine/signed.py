"""A definition whose runs ask for approvals: by a step, and by a state of its table."""

from typing import Any

from tests.unit.engine.definitions import build, step, takes
from tests.unit.engine.history import History, accepted, output

from waybook.engine.aggregates.grants import Grants
from waybook.engine.aggregates.policy import Policy
from waybook.engine.approvals import open_approvals
from waybook.engine.contract import Contract, NoContract
from waybook.engine.definition import KILL_SWITCH_ON, Row, Table
from waybook.engine.inputs import Accepted, Completed, Decide, Nothing, Outcome, Refused, World

FREE = World(policy=Policy(), grants=Grants())
"""An installation without policy and grants: everybody may."""

DAY = 86_400_000
REPORT = Contract(
    action="send",
    resource="mailto:board",
    digest="d1",
    requester="step:write",
    within_ms=DAY,
    answers=dict.fromkeys(("approved", "rejected", "expired"), "Word"),
    summary="the report to the board",
)

REPORTING = build(
    "reporting",
    (
        step("write", takes("Go"), gives="Report"),
        step("send", takes("Word"), takes("Report"), gives="Done"),
    ),
    {"Go": "start", "Done": "stop", "Word": "decision"},
)
"""A step asks, another takes the answer."""


def _reply(run: Any) -> Contract | NoContract:
    text = run.fields.get("text")
    if not text:
        return NoContract("no_draft", "there is no draft")
    return Contract(action="send", resource="mailto:ann", digest=f"sha-{text}", answers=ANSWERS)


ANSWERS = {"approved": "Approved", "rejected": "Rejected"}


def _text(run: Any, event: Any) -> dict[str, Any]:
    return {"text": event.get("text")}


DESK_TABLE = Table(
    initial="drafting",
    states=frozenset({"drafting", "ready", "approved", "sent", "rejected", "failed"}),
    terminal=frozenset({"sent", "rejected"}),
    rows=(
        Row("drafted", "drafting", "Draft", "ready", fields=_text),
        Row("saved", "ready", "Saved", fields=_text),
        Row("approve", "ready", "Approved", "approved"),
        Row("reject", "ready", "Rejected", "rejected"),
        Row("recall", "approved", "Recalled", "ready"),
        Row("edit", "approved", "Saved", "ready", fields=_text),
        Row("stopped", "approved", KILL_SWITCH_ON, "ready", reads=("policy",)),
        Row("sent", "approved", "Sent", "sent"),
        Row("again", "failed", "RetryRequested", "drafting"),
        Row("fail", "*", "StepFailed", "failed"),
    ),
    waits={"ready": "approval", "approved": "send"},
    contracts={"ready": _reply},
)
DESK = build(
    "desk",
    (step("draft", takes("Go"), gives="Draft"), step("post", takes("Approved"), gives="Sent")),
    {
        "Go": "start", "Approved": "decision", "Rejected": "decision", "Saved": "external", "Recalled": "external",
    },
    DESK_TABLE,
)  # fmt: skip
"""The state `ready` has people approve what stands in the run's fields."""


class Signed(History):
    """A history with the verbs of people who decide."""

    def say(self, decision: Any = "approved", *, world: World = FREE, **options: Any) -> Outcome:
        """A person's decision; `approval`, `digest`, `reason` as in Decide, the rest as in `command`."""
        given = {k: options.pop(k) for k in ("approval", "digest", "reason") if k in options}
        options = {"person": True, "by": "ann", **options}
        return self.give(Decide(decision, **given), world=world, **options)

    def waiting(self) -> list[str]:
        return list(open_approvals(self.it))

    def request(self, *contracts: Contract, **fields: Any) -> None:
        """The step `write` asks and returns."""
        action = self.action("write").id
        assert accepted(self.one(self.apply(Completed(action, (output("Report", **fields),), contracts=contracts))))


def reported(*contracts: Contract) -> Signed:
    """A run of REPORTING that waits for its approval."""
    history = Signed(REPORTING)
    history.start()
    history.request(*(contracts or (REPORT,)))
    return history


def drafted(text: str = "hello") -> Signed:
    """A run of DESK whose draft waits for a person."""
    history = Signed(DESK)
    history.start()
    history.complete("draft", output("Draft", text=text))
    return history


def word(outcome: Outcome) -> str:
    """The stable word of an outcome."""
    if isinstance(outcome, Accepted):
        return "accepted"
    assert isinstance(outcome, Refused | Nothing)
    return outcome.reason
