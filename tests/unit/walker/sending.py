"""An agent whose one step makes the side effects that a test plans, and what became of its run."""

from typing import Any

from tests.unit.walker.office import Done, Go, Office, Process
from tests.unit.walker.outside import Outside

from waybook.agents import (
    Agent,
    Effects,
    RetryPolicy,
    StepContext,
    step,
)
from waybook.agents.definition import define
from waybook.engine.hold import hold
from waybook.engine.run import Operation

SEEN: list[Any] = []
PLAN: dict[str, Any] = {}


class Sender(Agent):
    """Its one step does what the plan says."""

    name = "gated"

    @step(retry=RetryPolicy(max_failures=5))
    async def first(self, go: Go, effects: Effects, context: StepContext) -> Done:
        await PLAN["body"](effects, context)
        return Done()


async def send(effects: Effects, context: StepContext) -> None:
    """Another text at each attempt, as a model would write it."""
    SEEN.append(await effects.run("mail", {"text": f"text {context.attempt}"}))


async def begin(office: Office, outside: Outside, body: Any = send, name: str = "a", slots: int = 64) -> Process:
    PLAN["body"] = body
    return await office.process(name, Sender, effects={"mail": outside}, clock_margin_ms=0, slots=slots)


def operations(office: Office) -> list[Operation]:
    run = office.run()
    return list(run.operations.values()) if run is not None else []


def outcome(office: Office) -> str | None:
    found = operations(office)
    return found[-1].outcome if found else None


def ended(office: Office) -> bool:
    run = office.run()
    return run is not None and run.ended


def held(office: Office) -> bool:
    run = office.run()
    return run is not None and hold(define(Sender).engine, run).kind == "reconciling" and not run.open


def failed_so_often(office: Office, times: int) -> bool:
    return office.types().count("StepFailed") == times


def is_resolved(office: Office, timer: str) -> bool:
    run = office.run()
    return run is not None and timer in run.resolved
