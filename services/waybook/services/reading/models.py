"""The read models for a look: caught up with STATE, whether a projector is running or not."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from waybook.adapters.nats.errors import NO_STREAM, ApiError, port_error
from waybook.events.commit import Position
from waybook.projections.errors import NoReadModels
from waybook.projections.projector import Projector
from waybook.projections.read_models import ReadModels
from waybook.services.bootstrap.installation import Installation
from waybook.services.bootstrap.wiring import Wiring

log = logging.getLogger(__name__)

CATCH_UP_S = 60.0
BESIDE_S = 5.0


class _State(msgspec.Struct):
    last_seq: int


class _Info(msgspec.Struct):
    state: _State


async def last_position(wiring: Wiring) -> Position:
    """The end of STATE just now; 0 where nothing was ever walked. Raises PortUnavailable, PortMisconfigured."""
    call = f"STREAM.INFO.{wiring.state.stream}"
    info = await wiring.connection.api(call, None, _Info)
    if isinstance(info, ApiError):
        if info.err_code not in NO_STREAM:
            raise port_error(info, call)
        return Position(wiring.state.stream, 0)
    return Position(wiring.state.stream, info.state.last_seq)


@asynccontextmanager
async def caught_up(installation: Installation) -> AsyncIterator[ReadModels]:
    """Read models that hold everything that STATE held when the block began.

    Beside an active projector it waits for that one, up to 5 s, and then shows what there is; without one it
    projects the rest itself, into tables of this version. Raises PortUnavailable, ProjectionStopped.
    """
    position = await last_position(installation.wiring)
    async with ReadModels.open(installation.database_url) as models:
        if await models.has_reader(position.stream):
            try:
                await models.wait_until(position, BESIDE_S)
            except TimeoutError:
                _say_lag()
        elif position.sequence and not (await _is_at(models, position) and await models.is_current()):
            await _project(installation, position)
        yield models


def _say_lag() -> None:
    log.warning("the read models lag behind", extra={"action": "read_models_lag"})


async def _is_at(models: ReadModels, position: Position) -> bool:
    try:
        return await models.position(position.stream) >= position.sequence
    except NoReadModels:
        return False  # nothing was ever projected here


async def _project(installation: Installation, position: Position) -> None:
    projector = Projector(installation.wiring.connection, installation.database_url)
    work = asyncio.create_task(projector.run())
    reached = asyncio.create_task(projector.wait_until(position, CATCH_UP_S))
    await asyncio.wait((work, reached), return_when=asyncio.FIRST_COMPLETED)
    projector.stop()
    reached.cancel()
    await work
    if isinstance((await asyncio.gather(reached, return_exceptions=True))[0], TimeoutError):
        _say_lag()
