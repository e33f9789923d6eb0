"""How the command line speaks: tables for people, JSON for programs, errors with the way out."""

import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn, TextIO

import msgspec
from rich.console import Console
from rich.table import Table

from waybook.cli.strangers import shown

PIPE_WIDTH = 160
"""Columns where the output is no terminal: rows stay on one line for grep."""

out = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True)


WHOLE = frozenset({"received", "run", "action", "status", "step", "type", "seq", "event", "approval"})
"""Columns that are copied from the table into the next command, or read as one word: they are never broken."""


class ReaderGone(SystemExit):
    """Whoever read the output has enough of it (`waybook show RUN | head`). That ends the program and is no failure."""


class _Output(io.FileIO):
    """A file that ends the program when its reader is gone, once; what is written afterwards goes nowhere."""

    _gone = False

    def write(self, data: Any, /) -> int:
        if not self._gone:
            try:
                return super().write(data)
            except BrokenPipeError:
                self._gone = True
                raise ReaderGone(0) from None
        return len(data)


def prepare_output() -> None:
    """Makes pipes safe to write to: a reader that leaves early is no error, and no text is lost without a word.

    Text that Python was told not to buffer (`PYTHONUNBUFFERED`, usual in containers) goes to the file in a single write,
    and what a signal cuts off of that is lost without an error; so there is a buffer, and lines still come at once.
    """
    sys.stdout = _reopened(sys.stdout, _Output, (io.BufferedWriter, io.RawIOBase))
    sys.stderr = _reopened(sys.stderr, io.FileIO, (io.RawIOBase,))


def _reopened(stream: TextIO, file: type[io.FileIO], instead_of: tuple[type, ...]) -> TextIO:
    """The same output through a `file` and a buffer; `stream` itself where its own buffer is none of `instead_of`."""
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(stream.buffer, instead_of):
        return stream
    stream.flush()
    lines = stream.line_buffering or isinstance(stream.buffer, io.RawIOBase)
    buffer = io.BufferedWriter(file(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=lines)


def print_json(value: Any) -> None:
    """Writes `value` as indented JSON to standard output, free of colour and wrapping."""
    data = msgspec.json.encode(value, enc_hook=str)
    sys.stdout.write(msgspec.json.format(data, indent=2).decode("utf-8") + "\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes a table; None is shown as an empty cell."""
    table = Table(title=title, title_justify="left", header_style="bold", expand=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in WHOLE)
    for row in rows:
        table.add_row(*("" if cell is None else _cell(cell) for cell in row))
    out.print(table)


def _cell(value: Any) -> str:
    """Text of strangers must not be read as markup or control the terminal."""
    return shown(str(value), marks=out.is_terminal).replace("[", "\\[")


def print_counts(counts: Mapping[str, int]) -> None:
    """Writes numbers by state in one line."""
    out.print(", ".join(f"{name}: {count}" for name, count in sorted(counts.items())) or "nothing")


def when(ms: int | None) -> str | None:
    """A time in ms since the epoch as ISO 8601 in UTC, to the second."""
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def fail(message: str, code: int = 1) -> NoReturn:
    """Writes an error to standard error and ends the program."""
    err.print(f"error: {message}", markup=False)
    raise SystemExit(code)
