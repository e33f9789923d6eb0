"""Checks of an agent's schedules: what would only be noticed when a time has come."""

from collections.abc import Iterator
from typing import Any

import msgspec

from waybook.agents.reading import Sheet
from waybook.agents.schedule import Schedule
from waybook.events.errors import WaybookError
from waybook.events.registry import Registry
from waybook.events.typed import StartEvent


def schedule_findings(sheet: Sheet) -> Iterator[tuple[str, str]]:
    """Each schedule that cannot work: its name, and what it needs. `Agent.schedules` are Schedules, `config` a class."""
    names: set[str] = set()
    for schedule in sheet.agent.schedules:
        if schedule.name in names:
            yield schedule.name, "a name of its own: runs are told apart by the name of their schedule and their time"
        names.add(schedule.name)
        if (text := _start(sheet, schedule) or _configuration(sheet.agent.config, schedule)) is not None:
            yield schedule.name, text


def _start(sheet: Sheet, schedule: Schedule) -> str | None:
    starts = sorted(cls.__name__ for cls in sheet.classes if issubclass(cls, StartEvent))
    cls = type(schedule.start)
    if cls not in sheet.classes:
        return f"a start that a step takes: not {cls.__name__}, but {' or '.join(starts) or 'a StartEvent of its own'}"
    try:
        registry = Registry(cls)
        registry.check_fields(registry.encode(schedule.start))
    except WaybookError as error:
        return f"a start that can be stored: {error}"
    return None


def _configuration(config: type[Any], schedule: Schedule) -> str | None:
    fields = {field.encode_name for field in msgspec.structs.fields(config)}
    for name in schedule.configuration:
        if name not in fields:
            known = ", ".join(sorted(fields)) or "none"
            return f"fields of {config.__name__} in `configuration`: there is no `{name}` (its fields: {known})"
    try:
        msgspec.json.encode(schedule.configuration)
        msgspec.convert(schedule.configuration, config)
    except (TypeError, msgspec.ValidationError) as error:
        return f"a `configuration` that {config.__name__} can be made of: {error}"
    return None
