"""What the processes of one walk share: streams, queue and clock in memory."""

from collections.abc import Sequence

import msgspec

from waybook.adapters.memory.clock import ManualClock
from waybook.adapters.memory.command_queue import MemoryCommandQueue
from waybook.adapters.memory.notes import MemoryNotes, MemoryReplies
from waybook.adapters.memory.objects import MemoryObjects
from waybook.adapters.memory.state_log import MemoryStateLog
from waybook.adapters.memory.timers import MemoryNotices, MemoryTimers
from waybook.agents.definition import AgentDefinition
from waybook.engine.fold import fold_all
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.command import Answer, Command, StartPayload
from waybook.events.commit import Commit
from waybook.events.headers import COMMIT, REPLY
from waybook.events.subjects import RunKey, command_subject, state_subject
from waybook.events.typed import StartEvent
from waybook.services.scheduler.following import WANTED
from waybook.testing.kit.disturbance import Disturbance, DisturbedQueue
from waybook.testing.kit.process_clock import ProcessClock
from waybook.testing.kit.say import Say

TENANT, RUN = "test", "r1"
LEASE_MS = 60_000


class World:
    """One run's outside. Its time stands still until `clock` is moved."""

    def __init__(self, agent: AgentDefinition, disturbance: Disturbance) -> None:
        self.key = RunKey(TENANT, agent.engine.agent, RUN)
        self.clock = ManualClock()
        self.process_clock = ProcessClock(self.clock)
        self.state = MemoryStateLog(self.clock)
        self.queue = MemoryCommandQueue(self.clock, ack_wait_s=LEASE_MS / 1000)
        self.commands = DisturbedQueue(self.queue, disturbance)
        self.timers = MemoryTimers(self.clock)
        self.notices = MemoryNotices(self.state, WANTED, look_s=0.001)
        self.notes = MemoryNotes(self.clock)
        self.replies = MemoryReplies()
        self.objects = MemoryObjects()
        self.disturbance = disturbance
        self._agent = agent
        self._said = 0

    async def start(self, event: StartEvent, thread: str | None) -> None:
        """Publishes the run's start."""
        output = self._agent.output(event)
        payload = StartPayload(
            event=output.event, schema=output.schema, body=output.payload, content="c1", thread=thread, id=RUN
        )
        await self.say(Say("start", payload))

    async def say(self, say: Say) -> None:
        """Publishes a command to the run."""
        self._said += 1
        id = f"said-{self._said}"
        command = Command(
            id=id,
            verb=say.verb,
            issued_at=self.clock.now(),
            actor=say.actor,
            payload=msgspec.Raw(msgspec.json.encode(say.payload)),
        )
        subject = command_subject(self.key, say.verb, issuer=say.issuer)
        await self.commands.publish(
            subject, msgspec.json.encode(command), command=id, headers={REPLY: f"_INBOX.kit.{id}"}
        )

    @property
    def moving(self) -> list[str]:
        """What somebody still has to take up: commands, fires, commits that the scheduler has not looked at."""
        fires = [f"the fire of timer {timer.name}" for timer in self.timers.due]
        return [*self.queue.waiting.values(), *fires, *(["commits for the scheduler"] if self.notices.behind else [])]

    def refusals(self) -> list[str]:
        """What was answered to commands that were refused."""
        answers = [msgspec.json.decode(a, type=Answer) for told in self.replies.answers.values() for a in told]
        return [f"{a.command} was refused: {a.reason}, {a.text}" for a in answers if not a.ok]

    def history(self) -> Sequence[Commit]:
        """All commits of the run, oldest first."""
        codec, subject = Codec(), state_subject(self.key)
        return [codec.decode(r.payload, r.headers, subject) for r in self.state.records if r.subject == subject]

    def run(self) -> Run | None:
        """The run as its history says."""
        codec, subject = Codec(), state_subject(self.key)
        mine = [r for r in self.state.records if r.subject == subject]
        stored = [(codec.decode(r.payload, r.headers, subject), r.sequence, r.headers[COMMIT]) for r in mine]
        return fold_all(None, stored, key=self.key)
