"""Records the events of one commit while it is being decided, applying each to a working copy at once."""

from waybook.engine.definition import Definition
from waybook.engine.fold import apply
from waybook.engine.inputs import World
from waybook.engine.run import NO_PERSON, Run
from waybook.events import engine as e
from waybook.events.subjects import RunKey


class Holder:
    """Under which command and claim executions begin."""

    __slots__ = ("claim", "command")

    def __init__(self, command: str, claim: e.Claim) -> None:
        self.command = command
        self.claim = claim


class Recorder:
    """A working copy of a run and the events recorded so far for its next commit.

    `now` is the decision's time in ms UTC. `free` counts the executions that may still begin in this worker. `by`
    is the person whose word is being decided.
    """

    def __init__(self, definition: Definition, key: RunKey, run: Run | None, now: int, world: World) -> None:
        self.definition = definition
        self.key = key
        self.before = run
        self.now = now
        self.world = world
        self.free = world.free_slots
        self.by = NO_PERSON
        self.version = (run.version if run is not None else 0) + 1
        self.events: list[e.EngineEvent] = []
        self.commands: list[str] = []
        self._run = run
        self._copied = False

    @property
    def run(self) -> Run:
        """The run as the events so far leave it; only once it has started."""
        assert self._run is not None
        return self._run

    @property
    def started(self) -> bool:
        return self._run is not None

    def record(self, event: e.EngineEvent) -> str:
        """Adds an event to the commit, applies it, and returns its name."""
        name = f"{self.version}.{len(self.events)}"
        if not self._copied and self._run is not None:
            self._run = self._run.copy()
        self._copied = True
        self._run = apply(self._run, event, name, self.now, self.key)
        self.events.append(event)
        return name

    def next_name(self) -> str:
        """The name that the next recorded event will have."""
        return f"{self.version}.{len(self.events)}"

    def is_new(self, name: str) -> bool:
        """Whether `name` is that of an event recorded for this commit."""
        return name.partition(".")[0] == str(self.version)

    def apply_command(self, command: str) -> None:
        """Notes that this commit applies `command`, so that its redelivery is recognised, in this commit too."""
        self.commands.append(command)
        self.run.applied[command] = self.version
