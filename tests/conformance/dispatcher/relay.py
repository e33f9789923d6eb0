"""What follows from stored commits: timers that fall due, offers, other agents' runs, and their answers."""

from typing import TYPE_CHECKING, Any

from waybook.events import engine as e
from waybook.events.subjects import RunKey

if TYPE_CHECKING:
    from tests.conformance.dispatcher.world import World


class Relay:
    """Turns what the log says into commands, once each; told to do so whenever a case has come to rest."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._done: set[str] = set()
        self._timers: dict[tuple[RunKey, str], int] = {}
        self._answers: list[tuple[RunKey, dict[str, Any], str]] = []
        self._read: dict[RunKey, int] = {}

    async def follow(self) -> bool:
        """Gives the commands that the commits since the last time ask for; whether there were any."""
        given = False
        for key in list(self._world.traffic.runs):
            if key.agent.startswith("@"):
                continue
            history = await self._world.history(key)
            for entry in history.entries(self._read.get(key, 0)):
                given |= await self._one(key, entry.name, entry.event)
            self._read[key] = history.version
        return given

    async def _one(self, key: RunKey, name: str, event: e.EngineEvent) -> bool:
        if isinstance(event, e.TimerArmed):
            self._timers[key, name] = event.due
        elif isinstance(event, e.TimerCancelled | e.TimerFired):
            self._timers.pop((key, event.timer), None)
        elif isinstance(event, e.StepOffered):
            await self._give(key, "exec", {"step": event.step, "trigger": event.trigger}, f"exec-{key.run}-{name}")
            return True
        elif isinstance(event, e.ChildRequested):
            child = RunKey(key.tenant, event.agent, event.run)
            await self._give(child, "start", event.start, f"start-{event.run}")
            return True
        elif isinstance(event, e.RunEnded | e.StepFailed):
            return await self._answer(key, name, event)
        elif isinstance(event, e.CancelRequested):
            agent, _, run = event.target.rpartition(".")
            await self._give(RunKey(key.tenant, agent, run), "cancel", {"reason": event.reason}, f"cancel-{run}-{name}")
            return True
        return False

    async def _answer(self, key: RunKey, name: str, event: e.RunEnded | e.StepFailed) -> bool:
        """The end of a run, or its last failure, is told to the run that asked for it."""
        run = (await self._world.history(key)).run
        if run is None or run.parent is None or (isinstance(event, e.StepFailed) and not event.exhausted):
            return False
        said: dict[str, Any] = {"request": run.parent.request, "agent": key.agent, "run": key.run}
        if isinstance(event, e.RunEnded):
            said |= {"outcome": event.outcome, "result": event.result, "error": event.reason}
        else:
            said |= {"outcome": "exhausted", "error": event.error.text}
        caller = RunKey(key.tenant, run.parent.agent, run.parent.run)
        self._answers.append((caller, said, f"answer-{key.run}-{name}"))
        await self._give(caller, "answer", said, f"answer-{key.run}-{name}")
        return True

    async def repeat_answers(self, times: int) -> None:
        """The ends of the other agents' runs are told again, as by relays that do not know of each other."""
        for caller, said, name in list(self._answers):
            for number in range(times):
                await self._give(caller, "answer", said, f"{name}-{number}")

    async def fire(self) -> bool:
        """Fires the timers that are due; whether there were any."""
        now = self._world.clock.now()
        due = sorted((at, key, name) for (key, name), at in self._timers.items() if at <= now)
        for _, key, name in due:
            del self._timers[key, name]
            await self._give(key, "timer", {"timer": name}, f"timer-{key.run}-{name}")
        return bool(due)

    async def _give(self, key: RunKey, verb: str, payload: Any, command: str) -> None:
        await self._world.give(key, verb, payload, issuer="relay", command=command)
