"""How far a stream has been applied."""

from typing import NamedTuple


class Mark(NamedTuple):
    """The last commit applied: its sequence in the stream (0: none), its id, and when the server stored it (ms, UTC)."""

    sequence: int = 0
    commit_id: str = ""
    at: int = 0
