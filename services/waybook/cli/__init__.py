"""The command line."""

import sys

from waybook.cli.app import app

__all__ = ["app", "main"]


def main() -> None:
    """Runs a command. Exit codes: 0 done, 1 refused or failed, 2 usage."""
    try:
        app()
    except BrokenPipeError:
        # The reader of our output is gone (`waybook show RUN | head`); that is no failure.
        sys.stderr.close()
        raise SystemExit(0) from None
