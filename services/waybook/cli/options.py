"""Options that many commands share."""

from pathlib import Path
from typing import Annotated

import typer

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", help="Where the embedded servers keep their data [env: WAYBOOK_DATA_DIR].", show_default=False
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="N",
        help="Answer /metrics on this port, and the projector on the next; 0: free ones, -1: none "
        "[env: WAYBOOK_METRICS_PORT].",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON to standard output instead of a table.")]
Agent = Annotated[str, typer.Option("--agent", help="The agent that the run belongs to.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or its first characters when they are enough.")]
Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", help="Mails: .eml files, mboxes, Maildirs, folders (recursive), or JSON."),
]
