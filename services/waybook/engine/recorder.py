"""Records the events of one commit while it is being decided, applying each to a working copy at once."""

from typing import Self

from waybook.engine.definition import Definition
from waybook.engine.fold import apply, note
from waybook.engine.inputs import Diagnostic, DiagnosticCode, World
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

    `now` is the decision's time in ms UTC. `run` is the run as the events so far leave it, `started` whether there
    is one. `free` counts the executions that may still begin in this worker. `by` is the person whose word is being
    decided.
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
        self.diagnostics: tuple[Diagnostic, ...] = ()
        self.failed_gate: e.PreconditionFailed | None = None
        self.window_due = False
        self.started = run is not None
        self.run: Run = run  # type: ignore[assignment]  # only to be asked for once the run has started

    @classmethod
    def going_on(
        cls,
        definition: Definition,
        key: RunKey,
        run: Run,
        now: int,
        world: World,
        after: Run,
        events: list[e.EngineEvent],
    ) -> Self:
        """One that takes over a commit in the making: the working copy `after` of `run`, and at least one event."""
        self = cls(definition, key, run, now, world)
        self.run = after
        self.events = events
        return self

    def record(self, event: e.EngineEvent) -> str:
        """Adds an event to the commit, applies it, and returns its name."""
        events = self.events
        name = f"{self.version}.{len(events)}"
        if not self.started:
            self.run = apply(None, event, name, self.now, self.key)
            self.started = True
        else:
            if not events:
                self.run = self.run.copy()
            note(self.run, event, name, self.now)
        events.append(event)
        return name

    def note(self, code: DiagnosticCode, text: str, *events: str) -> None:
        """Keeps a remark on this decision for TRACE; nothing depends on it. `events`: types of what is not stored."""
        self.diagnostics = (*self.diagnostics, Diagnostic(code, text, events))

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
