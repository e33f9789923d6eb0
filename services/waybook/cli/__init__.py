"""The command line."""

import typer

from waybook.cli.events import events_app
from waybook.cli.streams import streams_app

app = typer.Typer(name="waybook", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
app.add_typer(events_app, name="events")
app.add_typer(streams_app, name="streams")


@app.callback()
def _root() -> None:
    """The book of the way that every message took: agent work as events on NATS JetStream."""


def main() -> None:
    """Runs a command. Exit codes: 0 done, 1 refused or failed, 2 usage."""
    app()
