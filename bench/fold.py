"""How fast histories are folded: `python -m bench.fold`.

A history is that of a message through five steps: six commits, with a mail of 1.5 kB and results of a few hundred
bytes. Each is decoded from its stored bytes and folded from nothing; the figure is events a second
of CPU time, in one process, so that what else the machine does shows less.
"""

import argparse
import gc
import statistics
import time

import msgspec

from waybook.engine.decide import commit_of, decide
from waybook.engine.definition import Definition, Parameter, Row, Step, Table
from waybook.engine.fold import fold_all
from waybook.engine.inputs import Completed, Delivered, Input, Output, Start
from waybook.engine.run import Run
from waybook.events.codec import Codec
from waybook.events.command import Command
from waybook.events.engine import Claim, TokenUsage
from waybook.events.subjects import RunKey

STEPS = (
    ("security_scan", "MailReceived", "ScanPassed", "classifying"),
    ("context_retrieval", "ScanPassed", "ContextGathered", None),
    ("classify", "ContextGathered", "MailClassified", "drafting"),
    ("draft", "MailClassified", "DraftProposed", None),
    ("route", "DraftProposed", "ReviewRequested", "draft_ready"),
)
START_MS = 1_800_000_000_000
KEY = RunKey("default", "inbox", "nfxxcytgmvzxg43bm5ssa3dpnz")


class Speed(msgspec.Struct, frozen=True):
    """Events a second: in all, and for each half of the work alone."""

    fold_events_s: float
    decode_only_events_s: float
    fold_only_events_s: float
    events: int
    commits: int
    bytes: int


def definition() -> Definition:
    """Five steps in a row under a table of six states."""
    states = ["received", "security_check", "classifying", "drafting", "draft_ready"]
    rows = [Row("E1", "received", "MailReceived", "security_check")]
    rows += [Row(f"to_{to}", "*", event, to) for _, _, event, to in STEPS if to is not None]
    kinds = {event: "plain" for _, _, event, _ in STEPS} | {"MailReceived": "start"}
    return Definition.build(
        agent="inbox",
        hash="0123456789abcdef",
        steps=tuple(Step(name, (Parameter("event", (takes,)),), frozenset({gives})) for name, takes, gives, _ in STEPS),
        table=Table("received", frozenset({*states, "failed"}), frozenset({"archived"}), tuple(rows)),
        kinds=kinds,  # type: ignore[arg-type]
        decode=lambda event, schema, payload: msgspec.json.decode(payload),
    )


def output(event: str, size: int) -> Output:
    """A typed event of about `size` bytes of JSON."""
    value = {"subject": "Where is my order?", "text": "Lorem ipsum dolor. " * (size // 19), "score": 0.9}
    return Output(event, 1, msgspec.Raw(msgspec.json.encode(value)), value)


def history(codec: Codec) -> list[bytes]:
    """The stored commits of one message, as the engine itself decides them."""
    agent = definition()
    run: Run | None = None
    commits: list[bytes] = []
    command = Command(id="c" * 26, verb="start", issued_at=START_MS, actor="cli")
    waiting: list[Input] = [
        Delivered(command, Start(output("MailReceived", 1500)), Claim(7, 1_800_000_000_000_000_000, 1), START_MS)
    ]
    while waiting:
        decision = decide(agent, KEY, run, waiting, START_MS + 40 * len(commits))
        commits.append(codec.encode(commit_of(decision, agent, "walker-1")))
        run = decision.run
        assert run is not None
        run.sequence = len(commits)
        waiting = [
            Completed(a.id, (output(_gives(a.step), 300),), 40, "rules", TokenUsage(120, 40, 160))
            for a in run.open_actions()
        ]
    return commits


def _gives(step: str) -> str:
    return next(gives for name, _, gives, _ in STEPS if name == step)


def measure(histories: int = 2_000, rounds: int = 5) -> Speed:
    """The median of `rounds`, each over `histories` histories."""
    codec = Codec()
    stored = history(codec)
    decoded = [codec.decode(payload) for payload in stored]
    events = sum(len(commit.events) for commit in decoded)

    def both() -> None:
        fold_all(None, [(codec.decode(p), i, "") for i, p in enumerate(stored, 1)], key=KEY)

    def decode_only() -> None:
        for payload in stored:
            codec.decode(payload)

    def fold_only() -> None:
        fold_all(None, [(c, i, "") for i, c in enumerate(decoded, 1)], key=KEY)

    figures = []
    for work in (both, decode_only, fold_only):
        seconds = []
        for _ in range(rounds):
            gc.collect()
            began = time.process_time()
            for _ in range(histories):
                work()
            seconds.append(time.process_time() - began)
        figures.append(events * histories / statistics.median(seconds))
    return Speed(figures[0], figures[1], figures[2], events, len(stored), sum(map(len, stored)))


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=2_000, help="in a round (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="the median counts (default %(default)s)")
    args = parser.parse_args()
    speed = measure(args.histories, args.rounds)
    print(f"history: {speed.commits} commits, {speed.events} events, {speed.bytes} bytes")
    print(f"fold_events_s         {speed.fold_events_s:>12,.0f}  (decoding included)")
    print(f"decode only           {speed.decode_only_events_s:>12,.0f}")
    print(f"fold only             {speed.fold_only_events_s:>12,.0f}")


if __name__ == "__main__":
    main()
