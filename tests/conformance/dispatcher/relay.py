"""What follows from stored commits, by the product's own rules, carried out whenever a case has come to rest."""

from typing import TYPE_CHECKING

import msgspec

from waybook.events.subjects import RunKey, state_subject
from waybook.services.scheduler.effects import ArmTimer, CancelTimer, Effect, Give, handed_over
from waybook.services.scheduler.following import follow

if TYPE_CHECKING:
    from tests.conformance.dispatcher.world import World


class Relay:
    """Arms and fires timers, gives commands, once each."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._timers: dict[tuple[RunKey, str], ArmTimer] = {}
        self._answers: list[Give] = []
        self._read: dict[RunKey, int] = {}

    async def follow(self) -> bool:
        """Carries out what the commits since the last time ask for; whether a command was given."""
        given = False
        for key in list(self._world.traffic.runs):
            async for record in self._world.backend.ports.state.history(state_subject(key), self._read.get(key, 0)):
                self._read[key] = record.sequence
                commit = self._world.codec.decode(record.payload, record.headers, record.subject)
                for effect in follow(key, commit, record.headers):
                    given |= await self._carry_out(effect)
        return given

    async def _carry_out(self, effect: Effect) -> bool:
        if isinstance(effect, ArmTimer):
            self._timers[effect.timer.key, effect.timer.name] = effect
        elif isinstance(effect, CancelTimer):
            self._timers.pop((effect.key, effect.name), None)
        elif isinstance(effect, Give):
            if effect.verb == "answer":
                self._answers.append(effect)
            await self._give(effect, effect.id)
            return True
        return False

    async def fire(self) -> bool:
        """Fires the timers that are due; whether there were any."""
        now = self._world.clock.now()
        due = sorted((a.timer.due, k) for k, a in self._timers.items() if a.timer.due <= now)
        for _, key in due:
            give = handed_over(self._timers.pop(key).timer)
            await self._give(give, give.id)
        return bool(due)

    async def repeat_answers(self, times: int) -> None:
        """The ends of the other agents' runs are told again, as by relays that do not know of each other."""
        for answer in list(self._answers):
            for number in range(times):
                await self._give(answer, f"{answer.id}-{number}")

    async def _give(self, give: Give, command: str) -> None:
        payload = msgspec.json.decode(msgspec.json.encode(give.payload))
        if give.verb == "start":  # other agents run with the configuration that is stored for them
            payload["configuration"] = payload.get("configuration") or self._world.config_of(give.key.agent)
        await self._world.give(give.key, give.verb, payload, issuer="relay", command=command)
