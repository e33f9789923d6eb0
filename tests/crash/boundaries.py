"""Every place of the five-step walk at which a process may die or stand still, by name."""

from tests.crash.five_steps import STEPS
from tests.crash.worker import Deed, Fault

from waybook.testing.faults import Boundary

COMMITS = 6


def boundaries(deed: Deed) -> dict[str, Fault]:
    """Commit 1 holds the start and the first begin; before it the run joins its thread."""
    found = {
        "thread-not-joined": Fault("append.before", deed, where="*.@thread.*"),
        "thread-joined-unseen": Fault("append.after", deed, where="*.@thread.*"),
    }
    commits: dict[str, Boundary] = {"decided": "append.before", "sent": "append.sent", "stored-unseen": "append.after"}
    for word, boundary in commits.items():
        for nth in range(1, COMMITS + 1):
            found[f"commit-{nth}-{word}"] = Fault(boundary, deed, nth=nth, where="*.inbox.*")
    bodies: dict[str, Boundary] = {"begun": "step.begun", "running": "step.running", "result-there": "step.ended"}
    for word, boundary in bodies.items():
        for step in STEPS:
            found[f"{step}-{word}"] = Fault(boundary, deed, where=step)
    found["not-acknowledged"] = Fault("ack.before", deed)
    return found
