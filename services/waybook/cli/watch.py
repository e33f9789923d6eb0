"""`waybook watch`: what the steps of a run show while they run."""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from waybook.cli.options import Agent, DataDir, Json, RunId
from waybook.cli.running import run_async
from waybook.cli.runs import find_run
from waybook.events.display import Display, Shown
from waybook.events.display import watch as watch_display
from waybook.events.headers import types_of
from waybook.events.subjects import RunKey, state_subject
from waybook.services.bootstrap.installation import Installation, looked_at
from waybook.services.bootstrap.settings import Settings

DRAIN_S = 0.5
"""How long nothing may come of a run that has ended before its display is taken to be complete."""

After = Annotated[
    int | None,
    typer.Option("--after", metavar="POSITION", help="Only what was shown behind this position.", show_default=False),
]
Follow = Annotated[bool, typer.Option("--follow/--no-follow", help="Stay until the run has ended.")]


def watch(
    run: RunId,
    after: After = None,
    follow: Follow = True,
    agent: Agent = "inbox",
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show what the steps of a run display: progress, and texts while they are written.

    With --json a line for each, with its position: after a pause `--after` goes on behind it. A step that is tried
    again begins anew; what its earlier attempt had shown stands above.
    """
    with suppress(KeyboardInterrupt):
        run_async(_watch(Settings.load(), run, agent, after, follow, data_dir, as_json=as_json))


async def _watch(
    settings: Settings, run: str, agent: str, after: int | None, follow: bool, data_dir: Path | None, *, as_json: bool
) -> None:
    async with looked_at(settings, "watch", data_dir) as installation:
        key = await find_run(installation, run, agent)
        screen = _Screen(as_json=as_json)
        options = {"inbox_prefix": settings.nats_inbox_prefix}
        source = watch_display(
            installation.addresses.nats_url.split(","), key, after=after, follow=follow, connect_options=options
        )
        async with aclosing(source) as shown:
            async for one in shown if not follow else _until_ended(shown, installation, key):
                screen.put(one)
        screen.end()


async def _until_ended(
    shown: AsyncGenerator[Shown, None], installation: Installation, key: RunKey
) -> AsyncIterator[Shown]:
    """What is shown until the run has ended and nothing comes any more."""
    ended = False
    while True:
        following = asyncio.ensure_future(anext(shown))
        try:
            while not (await asyncio.wait({following}, timeout=DRAIN_S))[0]:
                if ended:
                    return
                ended = await _has_ended(installation, key)
            yield following.result()
        finally:
            if not following.done():
                following.cancel()
                await asyncio.wait({following})


async def _has_ended(installation: Installation, key: RunKey) -> bool:
    tail = await installation.wiring.state.tail(state_subject(key))
    return tail is not None and "RunEnded" in (types_of(tail.headers) or ())


class _Screen:
    """Writes display events: texts as they grow, everything else as a line."""

    def __init__(self, *, as_json: bool) -> None:
        self._display = Display()
        self._as_json = as_json
        self._writing: str | None = None  # the execution whose text the cursor stands behind

    def put(self, shown: Shown) -> None:
        news = self._display.take(shown)
        if news is None:
            return
        if self._as_json:
            self._write(msgspec.json.encode(shown).decode() + "\n")
            return
        attempt = f" (attempt {shown.attempt})" if shown.attempt > 1 else ""
        if shown.text is None or shown.event != "TextChunk":
            self.end()
            said = " ".join(str(v) for v in shown.fields.values() if v is not None)
            self._write(f"{shown.step}{attempt}: {said or shown.event}\n")
            return
        if self._writing != shown.execution or news == "restarted":
            self.end()
            self._write(f"{shown.step}{attempt}: ")
            self._writing = shown.execution
        self._write(shown.text)

    def end(self) -> None:
        """Ends a line that is being written."""
        if self._writing is not None:
            self._write("\n")
            self._writing = None

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
