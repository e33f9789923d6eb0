"""The command line."""

import gc
import sys
from contextlib import suppress
from typing import NoReturn

__all__ = ["main"]


def main() -> None:
    """Runs a command. Exit codes: 0 done, 1 refused or failed, 2 usage."""
    gc.disable()  # nothing of what modules make is garbage, and looking for it takes a tenth of the start
    try:
        from waybook.cli.app import app
        from waybook.cli.output import ReaderGone, fail, prepare_output
        from waybook.events.errors import InvalidInput, WaybookError
    except ModuleNotFoundError as error:
        _lacking(error)
    finally:
        gc.enable()
    prepare_output()
    try:
        app()
    except InvalidInput as error:
        fail(str(error), 2)
    except WaybookError as error:
        fail(str(error), 1)
    finally:
        with suppress(ReaderGone):
            sys.stdout.flush()


def _lacking(error: ModuleNotFoundError) -> NoReturn:
    """The core is installed alone: its script is there, what it needs is an extra."""
    if error.name is None or error.name.split(".")[0] == "waybook":
        raise error
    sys.stderr.write(f"error: the command line needs the package {error.name}: pip install 'waybook[all]'\n")
    raise SystemExit(2) from error
