"""What people can do about a run that waits: the commands, ready to be copied."""

from collections.abc import Iterator, Sequence

from waybook.engine.hold import Why
from waybook.engine.stall import OpenRequest


def ways_out(run: str, agent: str, answer: Why) -> Iterator[str]:
    """A line for each question, approval and unsettled side effect of the run that waits for a person."""
    of_agent = "" if agent == "inbox" else f" --agent {agent}"
    for request in answer.requests:
        if request.agent is None:
            yield f"asks   {request.event} {request.name}; answer: {_signal(run, of_agent, request, answer.answers)}"
    for one in answer.approvals:
        yield f"asks   {one.action} on {one.resource}: waybook approve {run}/{one.approval}{of_agent} (or reject)"
    for operation in answer.unsettled:
        yield f"asks   did it happen? waybook settle {run} {operation}{of_agent} --arrived|--not-arrived --reason TEXT"
    if answer.hold.reason == "exhausted":
        yield f"asks   waybook retry|cancel {run}{of_agent}"


def _signal(run: str, of_agent: str, request: OpenRequest, answers: Sequence[str]) -> str:
    event = "|".join(answers) or "EVENT"
    return f"waybook signal {run} {event}{of_agent} --request {request.name} --data JSON"
