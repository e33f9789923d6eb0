"""What must hold afterwards: each key of `expect` has a reader that says what is wrong with it.

The readers are in the modules `expect_*`, one for each area.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.conformance.errors import Unsupported
from tests.conformance.pipeline.compare import Differences
from tests.conformance.pipeline.world import World

Reader = Callable[[World, Any], Awaitable[Differences]]

READERS: dict[str, Reader] = {}

LAST = frozenset({"auto_send_allowed"})
"""Keys whose reading goes on with the case; they are read after all others."""

NO_KEYS = frozenset({"then", "note"})


def reads(*keys: str) -> Callable[[Reader], Reader]:
    """Registers a reader of these keys."""

    def register(reader: Reader) -> Reader:
        READERS.update(dict.fromkeys(keys, reader))
        return reader

    return register


async def check(world: World, expect: dict[str, Any]) -> list[tuple[str, str]]:
    """All differences, as (key, what is wrong). Unsupported for a key that this runner does not read."""
    unread = set(expect) - set(READERS) - NO_KEYS
    if unread:
        raise Unsupported(f"expect.{', expect.'.join(sorted(unread))}: not read yet")
    found: list[tuple[str, str]] = []
    for key, value in sorted(expect.items(), key=lambda pair: pair[0] in LAST):
        if key not in NO_KEYS:
            found += [(key, text) for text in await READERS[key](world, value)]
    return found


@reads("either")
async def _either(world: World, value: Any) -> Differences:
    """One of the alternatives holds as a whole."""
    tried = [await check(world, alternative) for alternative in value]
    if any(not problems for problems in tried):
        return []
    return [f"alternative {i + 1}: {key}: {text}" for i, problems in enumerate(tried) for key, text in problems]
