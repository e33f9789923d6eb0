"""SQL statements by name, read from the .sql files beside this module.

A statement begins with `-- name: <name>`; comments after it describe it. `{front}` and `{tables}` stand for the
quoted schema of the views and of a generation's tables.
"""

import functools
import re
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@functools.cache
def statements(file: str) -> dict[str, str]:
    """The statements of `<file>.sql`, by name."""
    source = resources.files(__package__).joinpath(f"{file}.sql").read_text(encoding="utf-8")
    parts = _NAME.split(source)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def identifier(name: str) -> str:
    """`name` quoted as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def placed(statement: str, *, front: str | None = None, tables: str | None = None) -> str:
    """`statement` with the schemas put in."""
    if front is not None:
        statement = statement.replace("{front}", identifier(front))
    if tables is not None:
        statement = statement.replace("{tables}", identifier(tables))
    return statement
