"""Several workers, one queue, one run: as small a shell around the real `decide` and `fold` as the claim rules allow.

A move is atomic; between moves anything may happen. A worker decides on the run that it remembers, which may be
stale; the guard of the append then refuses it. What it sends to the queue is sent later, or never.
"""

from tests.unit.engine.claims.queue import Handle, Message, Queue
from tests.unit.engine.claims.rules import Rules
from tests.unit.engine.definitions import build, step, takes
from tests.unit.engine.history import CODEC, output

from waybook.engine.decide import commit_of, decide
from waybook.engine.definition import Definition, RetryPolicy
from waybook.engine.fold import fold
from waybook.engine.hold import hold
from waybook.engine.inputs import (
    Body,
    Completed,
    Continue,
    Decision,
    Delivered,
    Input,
    Outcome,
    Released,
    Signal,
    Start,
    World,
)
from waybook.engine.lease import Ack, Again, Bury, Forward, GiveBack, Keep, questions
from waybook.engine.run import Action, Run
from waybook.events.command import Command
from waybook.events.engine import StepBegan, StepCompleted
from waybook.events.subjects import RunKey

PATIENT = RetryPolicy(max_failures=1000)
"""So many losses do not convict here: the run must reach its end."""


def walk(retry: RetryPolicy) -> Definition:
    """Two steps side by side, joined with a signal, and one more."""
    return build(
        "walk",
        (
            step("left", takes("Go"), gives="L", retry=retry),
            step("right", takes("Go"), gives="R", retry=retry),
            step("join", takes("L"), takes("R"), takes("Answer"), gives="J", retry=retry),
            step("last", takes("J"), gives="Done", retry=retry),
        ),
        {"Go": "start", "Done": "stop", "Answer": "external"},
    )


def renamed(definition: Definition, hash: str) -> Definition:
    """The same under another hash: neither carries the other's runs."""
    return Definition(**{f: getattr(definition, f) for f in definition.__struct_fields__} | {"hash": hash})


WALK = walk(PATIENT)
FRAIL = walk(RetryPolicy(max_failures=2))
"""The second lost worker of a step convicts the command."""

GIVES = {"left": "L", "right": "R", "join": "J", "last": "Done"}
KEY = RunKey("t", "walk", "r")
COMMANDS: dict[str, Body] = {"start": Start(output("Go")), "signal": Signal(output("Answer"))}


ROUNDS = 60
"""Far more than a run of four steps needs; who is not done by then goes round in circles."""


class Violation(AssertionError):
    """A rule of the product is broken. The text begins with `double` or `stuck`."""


class Item:
    """What waits in a worker's mailbox: a delivery, or a body's result."""

    def __init__(self, handle: Handle | None = None, action: str | None = None) -> None:
        self.handle = handle
        self.action = action


class Sending:
    """A word to the queue on its way. One that must not come from a lapsed lease is checked when it is sent."""

    def __init__(self, verb: str, handle: Handle, *, careful: bool, lane: str | None = None) -> None:
        self.verb = verb
        self.handle = handle
        self.careful = careful
        self.lane = lane


class Worker:
    """A process. `bodies` are steps that run here (True) or whose result still waits here (False).

    `unsure`: so many items of the mailbox were decided, and it is not known whether what came of it is stored.
    """

    def __init__(self, name: str, definition: Definition) -> None:
        self.name = name
        self.definition = definition
        self.forget()

    def forget(self) -> None:
        """Its memory is gone, with all that ran in it."""
        self.run: Run | None = None
        self.mailbox: list[Item] = []
        self.held: dict[str, Handle] = {}
        self.bodies: dict[str, bool] = {}
        self.sendings: list[Sending] = []
        self.unsure = 0
        self.zombies: list[Handle] = []

    def handles(self) -> list[Handle]:
        """The deliveries that it sends heartbeats for."""
        waiting = [item.handle for item in self.mailbox if item.handle is not None]
        settled = [sending.handle for sending in self.sendings]
        return [*self.held.values(), *waiting, *settled, *self.zombies]


class Model:
    """The world: the queue, the run's true state, the workers. With `mixed`, one of them is of another version."""

    def __init__(
        self, rules: Rules | None = None, definition: Definition = WALK, workers: int = 3, *, mixed: bool = False
    ) -> None:
        self.rules = rules or Rules()
        self.queue = Queue()
        self.workers = [Worker(f"w{i + 1}", definition) for i in range(workers)]
        if mixed:
            self.workers[-1].definition = renamed(definition, "d2")
        self.run: Run | None = None
        self.versions: list[bytes] = []
        self.completed: set[str] = set()
        self.started: set[str] = set()
        self.purged = False
        self._continues = 0

    # --- moves of the world

    def publish(self, id: str, body: Body | None = None) -> None:
        command = Command(id=id, verb=id.partition("-")[0], issued_at=0, actor="p")
        self.queue.publish(command, body or COMMANDS[command.verb])

    def publish_continue(self) -> None:
        """The watchdog's, one for every state of the run."""
        self._continues += 1
        self.publish(f"continue-{self._continues}", Continue())

    def takers(self, sequence: int) -> list[Worker]:
        """Who pulls the message: everybody, or those with the definition whose lane it is in."""
        lane = self.queue.messages[sequence].lane
        return [w for w in self.workers if lane is None or w.definition.carries(lane)]

    def deliver(self, worker: Worker, sequence: int) -> None:
        worker.mailbox.append(Item(self.queue.deliver(sequence)))

    def finish(self, worker: Worker, action: str) -> None:
        """A body returns; its result waits."""
        worker.bodies[action] = False
        worker.mailbox.append(Item(action=action))

    def crash(self, worker: Worker) -> None:
        worker.forget()

    def recreate(self) -> None:
        """Rule 10: who owns the data directory alone starts anew, with new consumers."""
        for worker in self.workers:
            worker.forget()
        self.queue.recreate()

    def purge(self) -> None:
        self.purged = True
        self.queue.purge()

    def send(self, worker: Worker) -> None:
        sending = worker.sendings.pop(0)
        if sending.careful and sending.handle.broken:
            return
        if sending.verb == "ack":
            self.queue.ack(sending.handle)
        elif sending.lane is not None:
            self.queue.publish(sending.handle.command, sending.handle.body, sending.lane)
        else:
            self.queue.nak(sending.handle)

    # --- moves of a worker

    def work(self, worker: Worker, count: int, *, lost: bool = False) -> None:
        """Decides the first `count` items of the mailbox together and stores what comes of it.

        `lost`: the append is stored, but its outcome does not become known; the items wait again.
        """
        count = worker.unsure or count
        batch, worker.mailbox = worker.mailbox[:count], worker.mailbox[count:]
        worker.unsure = 0
        while True:
            batch = [item for item in batch if item.handle is None or not self._is_expired(worker, item.handle)]
            inputs = self._inputs(worker, batch)
            gone = self._gone(worker, inputs)
            decision = decide(worker.definition, KEY, worker.run, inputs, 0, World(gone=gone))
            if self._is_latest(worker.run):
                break
            worker.run = self.run
        if decision.events:
            stored = self._append(worker, decision)
            if lost:
                worker.mailbox = batch + worker.mailbox
                worker.unsure = len(batch)
                return
            worker.run = stored
        self._afterwards(worker, batch, inputs, decision)

    def _is_expired(self, worker: Worker, handle: Handle) -> bool:
        return self.rules.is_expired(worker.run, handle.command.id, handle.claim, broken=handle.broken)

    def _inputs(self, worker: Worker, batch: list[Item]) -> list[Input]:
        inputs: list[Input] = []
        for item in batch:
            if item.action is not None:
                inputs.append(Completed(item.action, (output(GIVES[self._action(item.action).step]),)))
                continue
            handle = item.handle
            assert handle is not None
            if self.rules.abandons_others:
                doubt = Command(id=f"doubt-{handle.command.id}-{handle.claim}", verb="continue", issued_at=0, actor="p")
                inputs.append(Delivered(doubt, Continue(), handle.claim, 0))
            handle.claim = self.rules.claim(handle.claim, worker.run)
            older = worker.held.get(handle.command.id)
            held = self.rules.held(older.claim if older is not None else None)
            inputs.append(Delivered(handle.command, handle.body, handle.claim, 0, held=held))
        return inputs

    def _action(self, action: str) -> Action:
        assert self.run is not None
        return self.run.actions[action]

    def _gone(self, worker: Worker, inputs: list[Input]) -> frozenset[int]:
        asked = questions(worker.run, inputs, worker.bodies)
        return self.rules.gone(asked, frozenset(s for s in asked if not self.queue.holds(s)), inputs)

    def _is_latest(self, run: Run | None) -> bool:
        return (run.version if run is not None else 0) == (self.run.version if self.run is not None else 0)

    def _append(self, worker: Worker, decision: Decision) -> Run:
        self._check_begins(worker, decision)
        payload = CODEC.encode(commit_of(decision, worker.definition, worker.name))
        commit = CODEC.decode(payload)
        for event in commit.events:
            if isinstance(event, StepCompleted):
                assert self.run is not None
                execution = self.run.actions[event.action].execution
                if execution in self.completed:
                    raise Violation(f"double: {execution} completed twice")
                self.completed.add(execution)
        self.versions.append(payload)
        self.run = fold(self.run, commit, len(self.versions), key=KEY)
        return self.run

    def _check_begins(self, worker: Worker, decision: Decision) -> None:
        """No step begins anew while a live holder with a valid lease runs it."""
        if self.run is None:
            return
        for event in decision.events:
            if not isinstance(event, StepBegan):
                continue
            before = self.run.executions.get(f"{event.walk}:{event.step}:{event.trigger}")
            if before is None or before not in self.run.open:
                continue
            for other in self.workers:
                if other.bodies.get(before) and self._is_valid(worker, other, event, self._action(before)):
                    raise Violation(f"double: {worker.name} begins {event.step} while {other.name} runs it")

    def _is_valid(self, worker: Worker, other: Worker, event: StepBegan, before: Action) -> bool:
        """Whether `other`, as far as its own heartbeats go, still has a lease for `before`."""
        if other is worker and event.command == before.command:
            return True
        handles = (h for h in other.handles() if h.command.id == before.command)
        return any(not h.broken and h.claim.sequence == before.claim.sequence for h in handles)

    def _afterwards(self, worker: Worker, batch: list[Item], inputs: list[Input], decision: Decision) -> None:
        outcomes = dict(zip(map(id, inputs), decision.outcomes, strict=True))
        decided: list[tuple[Handle, Outcome]] = []
        commands = [one for one in inputs if not _is_doubt(one)]
        for item, one in zip(batch, commands, strict=True):
            if item.handle is not None:
                decided.append((item.handle, outcomes[id(one)]))
            elif item.action is not None:
                worker.bodies.pop(item.action, None)
        for handle, outcome in decided:
            self._settle(worker, handle, outcome)
        begun = {event.action for event in decision.events if isinstance(event, StepBegan)}
        self._reconcile(worker, begun)
        for handle in list(worker.held.values()):
            self._settle(worker, handle, None)

    def _settle(self, worker: Worker, handle: Handle, outcome: Outcome | None) -> None:
        command = handle.command.id
        patience = 1 if command == "signal" else 0
        following = self.rules.settle(
            worker.run, command, handle.claim, outcome, broken=handle.broken, patience_ms=patience
        )
        if isinstance(following, Keep):
            worker.held[command] = handle
            if self.rules.acks_at_once:
                worker.sendings.append(Sending("ack", handle, careful=False))
            return
        if worker.held.get(command) is handle:
            del worker.held[command]
        if isinstance(following, Again):
            worker.mailbox.append(Item(handle))
        elif isinstance(following, Forward):
            moved = [
                Sending("publish", handle, careful=True, lane=following.lane), Sending("ack", handle, careful=True)
            ]  # fmt: skip
            worker.sendings += self.rules.moved(moved)
        elif isinstance(following, Ack | Bury):
            applied = worker.run is not None and command in worker.run.applied
            worker.sendings.append(Sending("ack", handle, careful=not applied))
        elif self.rules.beats_when_silent:
            worker.zombies.append(handle)

    def _reconcile(self, worker: Worker, begun: set[str]) -> None:
        claims = {command: handle.claim for command, handle in worker.held.items()}
        work = self.rules.reconcile(worker.run, claims, worker.bodies, begun)
        for action in work.cancel:
            del worker.bodies[action]
            worker.mailbox = [item for item in worker.mailbox if item.action != action]
        for started in work.start:
            if worker.held[started.command].broken:
                continue  # its lease has ended, so the command comes again
            if started.id in self.started:
                raise Violation(f"double: the body of {started.id} is started twice")
            self.started.add(started.id)
            worker.bodies[started.id] = True

    def look(self, worker: Worker) -> None:
        """Reads the run's tail, as it does with every heartbeat, and acts on what others made of it."""
        if worker.unsure:
            return
        worker.run = self.run
        self._reconcile(worker, set(worker.bodies))
        for handle in list(worker.held.values()):
            self._settle(worker, handle, None)

    def stop(self, worker: Worker) -> None:
        """A graceful stop: bodies are cancelled and released by a commit, deliveries given back; it starts anew."""
        while worker.unsure or any(item.action is not None for item in worker.mailbox):
            self.work(worker, len(worker.mailbox))
        worker.run = self.run
        claims = {command: handle.claim for command, handle in worker.held.items()}
        mine = [a for a in self.run.open_actions() if claims.get(a.command) == a.claim] if self.run is not None else []
        if mine:
            decision = decide(worker.definition, KEY, worker.run, [Released(tuple(a.id for a in mine))], 0)
            if decision.events:
                worker.run = self._append(worker, decision)
        for handle in worker.handles():
            following = self.rules.give_back(worker.run, handle.command.id, handle.claim, broken=handle.broken)
            if isinstance(following, GiveBack):
                self.queue.nak(handle)
            elif isinstance(following, Ack):
                self.queue.ack(handle)
        worker.forget()

    # --- the end

    def beats(self, message: Message) -> bool:
        """Whether a live worker keeps the message from being delivered again, with whatever delivery (P3)."""
        sequence = next(s for s, m in self.queue.messages.items() if m is message)
        return any(
            handle.claim.sequence == sequence
            for worker in self.workers
            for handle in worker.handles()
            if not handle.broken or handle in worker.zombies
        )

    def drain(self) -> None:
        """No more faults: everything goes on until nothing moves. Raises Violation when the run has not ended."""
        for _ in range(4):
            for _ in range(ROUNDS):
                if not self._drain_once():
                    break
            if self._ended() or not self.purged:
                break
            self._repair()
        if not self._ended():
            running = [a.step for a in self.run.open_actions()] if self.run is not None else []
            raise Violation(f"stuck: open actions {running}, queue {self.queue.snapshot().decode()}")
        if self.queue.messages:
            raise Violation(f"stuck: nobody settles {self.queue.snapshot().decode()}")

    def _repair(self) -> None:
        """After a purge: who got no answer asks again, and the watchdog sends `continue`."""
        for id in COMMANDS:
            if self.run is None or id not in self.run.applied:
                self.publish(id)
        self.publish_continue()

    def _ended(self) -> bool:
        """Whether the run has come to its end, or to a blocker that has a name and a person to act."""
        if self.run is None or self.run.ended:
            return self.run is not None
        carrier = next(w.definition for w in self.workers if w.definition.carries(self.run.definition))
        return hold(carrier, self.run).kind == "dead command"

    def _drain_once(self) -> bool:
        before = self._picture()
        for worker in self.workers:
            for action in [a for a, runs in worker.bodies.items() if runs]:
                self.finish(worker, action)
            while worker.sendings:
                self.send(worker)
            if worker.mailbox:
                self.work(worker, len(worker.mailbox))
            self.look(worker)
        for sequence, message in list(self.queue.messages.items()):
            if message.waiting:
                takers = self.takers(sequence)
                self.deliver(takers[sequence % len(takers)], sequence)
            elif not self.beats(message):
                self.queue.lapse(sequence)
        return self._picture() != before

    def _picture(self) -> object:
        handles = [[(h.claim, h.broken) for h in w.handles()] for w in self.workers]
        bodies = [dict(w.bodies) for w in self.workers]
        sendings = [len(w.sendings) for w in self.workers]
        return len(self.versions), list(self.queue.messages), self.queue.waiting(), handles, bodies, sendings


def _is_doubt(one: Input) -> bool:
    return isinstance(one, Delivered) and one.command.id.startswith("doubt-")
