"""What is said of failures that did not stop their run."""

from collections.abc import Iterator, Sequence

from waybook.engine.hold import PassedOver

MOST_LINES = 10
"""A wide run may have hundreds; `--json` has all of them."""


def passed_over_lines(failures: Sequence[PassedOver]) -> Iterator[str]:
    """A line for each failure, as many as people read."""
    for one in failures[:MOST_LINES]:
        yield f"passed {one.step} (attempt {one.attempt}) failed: {one.type}: {one.text}; the run went on without it"
    if len(failures) > MOST_LINES:
        yield f"passed {len(failures) - MOST_LINES} more; --json has all of them"
