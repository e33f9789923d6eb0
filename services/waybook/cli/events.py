"""`waybook events`: the contract, for those who read the streams."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from waybook.events.errors import InvalidInput
from waybook.events.registry import Registry
from waybook.events.schema import Described, described, export, export_type
from waybook.inbox import events as inbox_events

ALL_TYPES_FILE = "waybook-events.json"

events_app = typer.Typer(help="The contract: what stands on the streams.", no_args_is_help=True)


@events_app.callback()
def events() -> None:
    """The contract: what stands on the streams."""


@events_app.command()
def schema(
    name: Annotated[str | None, typer.Option("--type", metavar="T", help="One type only, as JSON Schema.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a file for each type, and one for all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON Schema instead of a table.")] = False,
) -> None:
    """The JSON Schema (2020-12) of commits, commands, answers and every event type; without options a table of them."""
    registry = Registry.of_module(inbox_events)
    try:
        documents = {name: export_type(name, registry)} if name is not None else {}
    except InvalidInput as exc:
        raise typer.BadParameter(str(exc), param_hint="--type") from exc
    if out is not None:
        if name is None:
            documents = {item.name: export_type(item.name, registry) for item in described(registry)}
            documents[ALL_TYPES_FILE.removesuffix(".json")] = export(registry)
        _report_files(_write(out, documents), as_json)
    elif name is not None:
        _print_json(documents[name])
    elif as_json:
        _print_json(export(registry))
    else:
        _print_table(described(registry))


def _write(folder: Path, documents: dict[str, dict[str, object]]) -> list[Path]:
    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for stem, document in documents.items():
            file = folder / f"{stem}.json"
            file.write_bytes(_pretty(document) + b"\n")
            files.append(file)
    except OSError as exc:
        typer.echo(f"cannot write schemas to {folder}: {exc.strerror or exc}; name another folder with --out", err=True)
        raise typer.Exit(1) from exc
    return files


def _report_files(files: list[Path], as_json: bool) -> None:
    if as_json:
        _print_json({"files": [str(file) for file in files]})
    else:
        typer.echo(f"{len(files)} schemas in {files[0].parent}")


def _pretty(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _print_json(document: object) -> None:
    typer.echo(_pretty(document).decode())


def _print_table(items: tuple[Described, ...]) -> None:
    table = Table("type", "kind", "version", "what it is", box=None, pad_edge=False)
    for item in items:
        table.add_row(item.name, item.kind, str(item.version), item.description)
    Console().print(table)
