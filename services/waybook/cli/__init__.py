"""The command line."""

import sys

from waybook.cli.app import app
from waybook.cli.output import buffer_output, fail
from waybook.events.errors import InvalidInput, WaybookError

__all__ = ["app", "main"]


def main() -> None:
    """Runs a command. Exit codes: 0 done, 1 refused or failed, 2 usage."""
    buffer_output()
    try:
        app()
    except InvalidInput as error:
        fail(str(error), 2)
    except WaybookError as error:
        fail(str(error), 1)
    except BrokenPipeError:
        # The reader of our output is gone (`waybook show RUN | head`); that is no failure.
        sys.stderr.close()
        raise SystemExit(0) from None
