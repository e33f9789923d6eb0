"""Gates of the owner's own: functions that may object to an unattended reply, and can do nothing else (pipeline-spec 6).

A plugin answers None (no objection) or a sentence (an objection). One that raises, or is silent for two seconds, objects:
what cannot be evaluated lets nothing leave. It sees the sender and the category; it cannot approve, send or change a run.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence

import msgspec

PATIENCE_S = 2.0
"""How long one plugin may take."""

MOST_TEXT = 300

Gate = Callable[[str, str], "Awaitable[str | None] | str | None"]


class Plugin(msgspec.Struct, frozen=True):
    """A gate by its name; `gate(sender, category)` may be a coroutine function. Others run in a thread."""

    name: str
    gate: Gate


class Plugins:
    """Asks each in turn; the first objection stands."""

    def __init__(self, plugins: Sequence[Plugin], *, patience_s: float = PATIENCE_S) -> None:
        self._plugins = tuple(plugins)
        self._patience_s = patience_s

    async def objection(self, sender: str, category: str) -> str | None:
        """The first objection with the plugin's name, None where there is none."""
        for plugin in self._plugins:
            said = await self._ask(plugin, sender, category)
            if said is not None:
                return f"{plugin.name}: {said}"[:MOST_TEXT]
        return None

    async def _ask(self, plugin: Plugin, sender: str, category: str) -> str | None:
        try:
            async with asyncio.timeout(self._patience_s):
                if inspect.iscoroutinefunction(plugin.gate):
                    said = await plugin.gate(sender, category)
                else:
                    said = await asyncio.to_thread(plugin.gate, sender, category)
        except TimeoutError:
            return f"it did not answer within {self._patience_s:g} s"
        except Exception as error:  # noqa: BLE001 - whatever it raises, it did not agree
            return f"it failed ({type(error).__name__})"
        return said if said is None or isinstance(said, str) else f"it answered {type(said).__name__}, no text"
