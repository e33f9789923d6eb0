"""A probe: a question to a real server, the answer that the design stands on, and the answer that came."""

from collections.abc import Awaitable, Callable

import msgspec

from waybook.adapters.nats.probes.bench import Bench


class Seen(msgspec.Struct, frozen=True):
    """What a probe saw. `note` holds figures that are worth reading and judged by nobody."""

    answer: str
    note: str = ""


class Probe(msgspec.Struct, frozen=True):
    """`id` is the one under which the reasons cite it; `run` gets a bench of its own, without leftovers."""

    id: str
    question: str
    expected: str
    run: Callable[[Bench], Awaitable[Seen]]


class ProbeResult(msgspec.Struct, frozen=True):
    """One row of `waybook streams check --probe`."""

    id: str
    question: str
    expected: str
    seen: str
    ok: bool
    note: str = ""
