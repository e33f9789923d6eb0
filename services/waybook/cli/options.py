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
ModelKind = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="KIND",
        help="What classifies and drafts: rules, local (a small model on this machine) or openai (any server of that "
        "protocol) [env: WAYBOOK_MODEL; default: rules].",
        show_default=False,
    ),
]
ModelUrl = Annotated[
    str | None,
    typer.Option(
        "--model-url",
        metavar="URL",
        help="Base URL of the model's server, mostly ending in /v1; its key stands in WAYBOOK_MODEL_KEY "
        "[env: WAYBOOK_MODEL_URL; default: OpenAI's, with OPENAI_API_KEY].",
        show_default=False,
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model-name",
        metavar="NAME",
        help="The model's name there; with --model local a GGUF file [env: WAYBOOK_MODEL_NAME].",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON to standard output instead of a table.")]
Agent = Annotated[
    str, typer.Option("--agent", metavar="AGENT", help="The agent that the run belongs to: its name, or MODULE:AGENT.")
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or its first characters when they are enough.")]
Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", help="Mails: .eml files, mboxes, Maildirs, folders (recursive), or JSON."),
]
