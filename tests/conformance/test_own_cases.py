"""The project's own scenarios, which need no file from outside: in memory, and some of them on a real nats-server."""

from pathlib import Path

import pytest
from tests.conformance.cases import Case, collect
from tests.conformance.pipeline.backends import in_memory, on_nats
from tests.conformance.test_cases import INTERPRETERS

from waybook.testing.servers import NatsUnderTest

CASES = collect(sorted(Path(__file__).with_name("own").glob("*.json")))

ON_A_SERVER = frozenset(
    {
        *(
            "crash-with-the-answer-unseen",
            "late-result-of-superseded-worker",
            "one-mail-three-deliveries",
            "graceful-stop",
        ),
        *("killed-between-outputs", "everybody-gets-it", "caller-replaced", "increments-add-up", "step-configuration"),
    }
)
"""Those that a real server's leases, guards and redeliveries matter most for."""


@pytest.mark.parametrize("own", CASES, ids=lambda case: case.id)
async def test_in_memory(own: Case) -> None:
    """What the scenario expects holds in every pass through it."""
    await INTERPRETERS[own.format](own, in_memory)


@pytest.mark.parametrize("own", [c for c in CASES if c.id in ON_A_SERVER], ids=lambda case: case.id)
async def test_on_a_server(own: Case, clean_nats: NatsUnderTest) -> None:
    """The same holds on a real nats-server."""
    await INTERPRETERS[own.format](own, lambda: on_nats(clean_nats))
