"""Where worker processes come from.

A fork server has imported everything once, so that a worker costs hundredths of a second. Each has its own pid, loop
and connections and knows nothing of any run.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from typing import Any

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [
        "tests.crash.worker",
        "tests.crash.mailing",
        "tests.crash.inboxing",
        "tests.conformance.dispatcher.deadly",
    ]
)


def begin(target: Callable[..., None], *arguments: Any) -> ForkServerProcess:
    """A new process that runs `target`, which has to be importable."""
    _ensure_server()
    process = _context.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def ready() -> None:
    """Returns when the server has imported everything, which takes seconds on a busy machine."""
    process = begin(_nothing)
    process.join()


def _nothing() -> None:
    """The first process waits for the server's imports."""


def _ensure_server() -> None:
    """The server imports by PYTHONPATH alone, not by what a test runner adds to the path."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
