"""Agents whose bodies `check` reads."""

# mypy: disable-error-code="empty-body"

from typing import Any

from waybook.agents import (
    Agent,
    AgentConfig,
    Event,
    ExternalEvent,
    RunContext,
    StartEvent,
    StopEvent,
    precondition,
    step,
)

KEY = "query"


class Go(StartEvent, frozen=True, kw_only=True):
    query: str = ""


class Found(Event, frozen=True, kw_only=True):
    pass


class Note(ExternalEvent, frozen=True, kw_only=True):
    pass


class Piece(ExternalEvent, frozen=True, kw_only=True):
    pass


class Unmade(Event, frozen=True, kw_only=True):
    pass


class End(StopEvent, frozen=True, kw_only=True):
    pass


class Config(AgentConfig, frozen=True, kw_only=True):
    wait: bool = False


@precondition
async def note_is_there(note: Note | None, config: Config) -> bool:
    return note is not None or not config.wait


class Clean(Agent):
    """Counts in the context, and looks at an optional event that its precondition covers."""

    config = Config

    @step
    async def first(self, go: Go, pieces: list[Piece] | None, run: RunContext) -> Found | None:
        run.set("pieces", len(pieces or []))
        run.increment("rounds")
        run.set("long", len(go.query) > 3)
        return Found()

    @step(precondition=note_is_there)
    async def second(self, found: Found, note: Note | None, config: Config, run: RunContext) -> End:
        if config.wait and note is None and run.count("pieces") and run.flag("long"):
            return End()
        return End()


# The optional list above is asked for on purpose without a precondition that names it.
@precondition
async def any_pieces(pieces: list[Piece] | None) -> bool:
    return True


Clean.first = step(precondition=any_pieces)(Clean.first)  # type: ignore[method-assign]


class ConfigLies(Agent):
    """Finds out too late that it should have waited, by way of a name."""

    config = Config

    @step
    async def first(self, go: Go, config: Config, note: Note | None = None) -> End | None:
        missing = note is None
        wanted = config.wait
        if wanted and missing:
            return None
        return End()


class NestedLies(Agent):
    """The two questions stand in two conditions."""

    config = Config

    @step
    async def first(self, go: Go, config: Config, note: Note | None = None) -> End | None:
        if config.wait:
            if not note:
                return None
            return End()
        return End()


@precondition
async def reached(pieces: list[Piece], run: RunContext) -> bool:
    return bool(len(pieces) >= run.get("limit", 0))


class Smuggles(Agent):
    """Hands data on beside its events."""

    @step
    async def first(self, go: Go, run: RunContext) -> Found:
        text: Any = go.query
        run.set(KEY, text.strip())
        run.set("limit", go.query)
        return Found()

    @step
    async def second(self, found: Found, state: RunContext) -> None:
        state.get("query")

    @step(precondition=reached)
    async def third(self, pieces: list[Piece]) -> End:
        return End()


class NamedKey(Agent):
    """Gives the key a name first; one that is given another value later is nobody's."""

    @step
    async def first(self, go: Go, run: RunContext) -> Found:
        key = "query"
        run.set(key, go.query)
        other = "limit"
        if go.query:
            other = "size"
        run.set(other, go.query)
        return Found()

    @step
    async def second(self, found: Found, run: RunContext) -> End:
        key = "query"
        run.get(key)
        run.get("limit")
        run.get("size")
        return End()


class BareNone(Agent):
    """An optional event without `| None`."""

    @step
    async def first(self, go: Go, note: Note = None) -> End:  # type: ignore[assignment]
        return End()


class Undecided(Agent):
    """Feeds itself, and stops at the first piece."""

    @step
    async def first(self, go: Go) -> Found:
        return Found()

    @step(max_executions=2)
    async def again(self, found: Found) -> Found:
        return found

    @step
    async def collect(self, pieces: list[Piece]) -> End:
        return End()


class Broken(Agent):
    """Three mistakes."""

    @step
    async def one(self, go: Go, end: End) -> End: ...

    @step
    async def two(self, left: Piece, right: Piece, unmade: Unmade) -> End: ...
