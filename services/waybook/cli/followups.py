"""`waybook events follow-ups`: what programs of the owner's are to do outside, read off the log."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from waybook.cli.options import DataDir
from waybook.cli.running import run_async
from waybook.events.commit import Position
from waybook.events.subjects import state_stream
from waybook.events.subscribe import subscribe
from waybook.inbox.followups import follow_ups
from waybook.services.bootstrap.installation import looked_at
from waybook.services.bootstrap.settings import Settings
from waybook.services.reading.models import last_position

TYPES = frozenset({"Transitioned", "SendDue", "ReplyReturned"})

After = Annotated[
    int | None,
    typer.Option("--after", metavar="POSITION", min=0, help="Behind this `position`.", show_default=False),
]
Follow = Annotated[bool, typer.Option("--follow", help="Go on with what comes, until Ctrl-C.")]


def list_follow_ups(after: After = None, follow: Follow = False, data_dir: DataDir = None) -> None:
    """What is to be done outside, one JSON object a line: to learn from a mail, to show an answer, to count a bounce.

    Each has an `id`; the same id is the same thing, so a program that keeps ids does each once. `position` is where to go
    on from.
    """
    run_async(_list(Settings.load(), after, follow, data_dir))


async def _list(settings: Settings, after: int | None, follow: bool, data_dir: Path | None) -> None:
    async with looked_at(settings, "follow-ups", data_dir) as installation:
        if not follow and not (await last_position(installation.wiring)).sequence:
            return
        items = subscribe(
            installation.addresses.nats_url,
            after=Position(state_stream(), after) if after is not None else None,
            types=TYPES,
            agents=["inbox"],
            tenant=settings.tenant,
            follow=follow,
            connect_options={"inbox_prefix": settings.nats_inbox_prefix.encode()},
        )
        async for item in items:
            for one in follow_ups(item.key, item.names, item.events):
                row = {**msgspec.structs.asdict(one), "position": item.position.sequence}
                typer.echo(msgspec.json.encode(row).decode())
