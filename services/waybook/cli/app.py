"""All commands in one place."""

from importlib.metadata import version
from typing import Annotated

import typer

from waybook.cli import again, agents, decide, look, mails, restart, run, schedules, settle, steer, watch
from waybook.cli.events import events_app
from waybook.cli.followups import list_follow_ups
from waybook.cli.owner import grants_app, kill_switch_app, policy_app
from waybook.cli.projections import projections_app
from waybook.cli.sender import sender_app
from waybook.cli.serve import serve_app
from waybook.cli.streams import streams_app

app = typer.Typer(
    name="waybook",
    help="An event-sourced runtime for AI-agent work: the book of the way that every message took.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"waybook {version('waybook')}")
        raise typer.Exit


@app.callback()
def waybook(
    _version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """What stands in front of every command."""


app.command("run")(run.run)
app.command("up")(run.up)
app.command("ingest")(run.ingest)
app.command("messages")(look.messages)
app.command("show")(look.show)
app.command("actions")(look.actions)
app.command("why")(look.why)
app.command("approvals")(decide.approvals)
app.command("approve")(decide.approve)
app.command("reject")(decide.reject)
app.command("revoke")(decide.revoke)
app.command("release")(mails.release)
app.command("undo")(mails.undo)
app.command("save")(mails.save)
app.command("redraft")(mails.redraft)
app.command("block")(mails.block)
app.command("signal")(steer.signal)
app.command("retry")(again.retry)
app.command("restart")(restart.restart)
app.command("watch")(watch.watch)
app.command("cancel")(steer.cancel)
app.command("lint")(agents.lint)
app.command("graph")(agents.graph)
app.command("start")(agents.start)
app.command("schedules")(schedules.schedules)
app.command("operations")(settle.operations)
app.command("settle")(settle.settle)
app.command("compensate")(settle.compensate)
app.command("renew")(settle.renew)
app.command("take-over")(steer.take_over)
app.command("hand-back")(steer.hand_back)
app.command("thread")(steer.thread)
app.add_typer(kill_switch_app, name="kill-switch")
app.add_typer(policy_app, name="policy")
app.add_typer(grants_app, name="grants")
app.add_typer(sender_app, name="sender")
events_app.command("follow-ups")(list_follow_ups)
app.add_typer(events_app, name="events")
app.add_typer(projections_app, name="projections")
app.add_typer(serve_app, name="serve")
app.add_typer(streams_app, name="streams")
