"""What a check found."""

from collections.abc import Sequence

import msgspec

from waybook.events.errors import TerminalError


class ViolationsFound(TerminalError, AssertionError):
    """An agent does not keep what its runs promise; the message lists where."""


class Violation(msgspec.Struct, frozen=True):
    """A broken promise. `place` is the boundary at which the process was killed, with what was disturbed."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class Report(msgspec.Struct, frozen=True):
    """All walks of a check: how many, at which boundaries they were killed, and what was wrong.

    `state` is where the undisturbed walk rests, `held` how many wait for a person to say whether a side effect happened.
    """

    walks: int
    boundaries: tuple[str, ...]
    violations: tuple[Violation, ...]
    state: str
    held: int = 0

    def expect_none(self) -> None:
        """Raises ViolationsFound unless every promise was kept."""
        if self.violations:
            raise ViolationsFound(
                f"{len(self.violations)} violations in {self.walks} walks:\n" + _list(self.violations)
            )


def _list(violations: Sequence[Violation], most: int = 20) -> str:
    lines = [f"- {one}" for one in violations[:most]]
    if len(violations) > most:
        lines.append(f"- and {len(violations) - most} more")
    return "\n".join(lines)
