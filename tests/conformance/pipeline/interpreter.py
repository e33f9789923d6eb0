"""Carries out one pipeline case: every pass that its choices have, `then` included."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

# The modules of verbs and of readers register themselves.
import tests.conformance.pipeline.expect_context
import tests.conformance.pipeline.expect_records
import tests.conformance.pipeline.expect_senders
import tests.conformance.pipeline.expect_states
import tests.conformance.pipeline.expect_steps
import tests.conformance.pipeline.verbs_flow
import tests.conformance.pipeline.verbs_lifecycle
import tests.conformance.pipeline.verbs_mail
import tests.conformance.pipeline.verbs_people
import tests.conformance.pipeline.verbs_send
import tests.conformance.pipeline.verbs_steps
import tests.conformance.pipeline.verbs_time  # noqa: F401
from tests.conformance.cases import Case
from tests.conformance.errors import Mismatch
from tests.conformance.pipeline.arranging import arrange
from tests.conformance.pipeline.backends import Backend
from tests.conformance.pipeline.choices import passes
from tests.conformance.pipeline.expect import check
from tests.conformance.pipeline.verbs import perform
from tests.conformance.pipeline.world import World, opened

OpenBackend = Callable[[], AbstractAsyncContextManager[Backend]]


async def run_case(case: Case, open_backend: OpenBackend) -> None:
    """Raises Mismatch when anything that the case expects does not hold, in any pass; Unsupported."""
    for choices in passes():
        async with open_backend() as backend, opened(case, backend, choices) as world:
            problems = await _pass(case, world)
        if problems:
            way = f" ({choices})" if choices.taken else ""
            raise Mismatch([(key, f"{text}{way}") for key, text in problems])


async def _pass(case: Case, world: World) -> list[tuple[str, str]]:
    await arrange(world)
    for action in case.actions:
        await perform(world, action)
    found = await check(world, case.expect)
    for action in case.expect.get("then", []):
        await world.set_mark()
        await perform(world, action)
        found += [(f"then {action['do']}: {key}", text) for key, text in await check(world, action.get("expect", {}))]
    return found
