"""Runs a command's coroutine: the event loop, and errors turned into a sentence and an exit code."""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from waybook.cli.output import fail
from waybook.events.errors import InvalidInput, WaybookError

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. Exit code 2 for input that cannot be used, 1 for every other known error, 130 on Ctrl-C."""
    _set_up_logging()
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(work)
    except InvalidInput as error:
        fail(str(error), 2)
    except WaybookError as error:
        fail(str(error), 1)
    except KeyboardInterrupt:
        fail("interrupted; what was committed stands, run the command again to go on", 130)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed, the standard loop otherwise."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _set_up_logging() -> None:
    """WAYBOOK_LOG (DEBUG, INFO, WARNING, ERROR; default ERROR) sets what goes to standard error."""
    level = os.environ.get("WAYBOOK_LOG", "ERROR").upper()
    names = logging.getLevelNamesMapping()
    if level not in names:
        fail(f"WAYBOOK_LOG is {level!r}; use one of {', '.join(names)}", 2)
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
