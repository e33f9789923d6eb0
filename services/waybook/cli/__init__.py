"""The command line."""

import sys
from contextlib import suppress

from waybook.cli.app import app
from waybook.cli.output import ReaderGone, fail, prepare_output
from waybook.events.errors import InvalidInput, WaybookError

__all__ = ["app", "main"]


def main() -> None:
    """Runs a command. Exit codes: 0 done, 1 refused or failed, 2 usage."""
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
