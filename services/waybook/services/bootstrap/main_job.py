"""The main job in one go: take mails in, walk them, wait until each has ended or is held, report."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

import msgspec

from waybook.events.errors import RetryableError
from waybook.inbox.intake.sources import Item, Skipped
from waybook.projections.errors import NoReadModels
from waybook.projections.read_models import ReadModels
from waybook.services.bootstrap.installation import Installation, owned, projecting
from waybook.services.bootstrap.mail_walker import walking_mails
from waybook.services.bootstrap.models import is_slow
from waybook.services.bootstrap.observing import UNOBSERVED, Observing
from waybook.services.bootstrap.settings import Settings
from waybook.services.intake.starts import Starts, Submission, taken_or_refused
from waybook.services.reading.unserved import Unserved, left_behind

POLL_S = 0.1
PATIENCE_S = 120.0
"""How long nothing may move before the job gives up waiting; what is committed stands."""
PATIENCE_WITH_MODELS_S = 900.0
"""The same where steps ask a model: one may work for all of its deadline before anything moves."""


class NothingMoves(RetryableError):
    """No run moved for a long time; the message names how many are open."""


class Progress(Protocol):
    """Told how far the job is."""

    def taken_in(self, count: int) -> None: ...
    def settled(self, count: int, total: int) -> None: ...


class Duplicate(msgspec.Struct, frozen=True):
    """A mail whose run was there already."""

    path: str
    run: str


class Report(msgspec.Struct, frozen=True):
    """What `waybook run --json` prints. Every file or mail of it is in one of `messages`, `duplicates`, `skipped`.

    `counts` are those of `messages`, by status.

    `unserved` are open runs of the tenant, from earlier calls, that no worker carries on (hold "no worker").
    """

    messages: list[dict[str, Any]]
    duplicates: list[Duplicate]
    skipped: list[Skipped]
    counts: dict[str, int]
    seconds: float
    unserved: list[Unserved] = []


async def run_mails(
    settings: Settings,
    items: Iterable[Item | Skipped],
    progress: Progress,
    data_dir: Path | None = None,
    observing: Observing = UNOBSERVED,
) -> Report:
    """Walks `items` on the settings' servers or embedded ones, started for the time of the call.

    Raises what opening an installation raises, NothingMoves, StreamFull never (it waits).
    """
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        installation = await stack.enter_async_context(owned(settings, "run", data_dir, observing.hook))
        await stack.enter_async_context(projecting(installation, observing))
        walker = await stack.enter_async_context(
            walking_mails(installation, observing, scheduler=True, recurring=False)
        )
        patience_s = PATIENCE_WITH_MODELS_S if is_slow(settings) else PATIENCE_S
        submissions, skipped = await _take_in(installation, items, progress, patience_s)
        models = await stack.enter_async_context(ReadModels.open(installation.database_url))
        left = await left_behind(installation, tuple(walker.definitions))
        runs = sorted({s.key.run for s in submissions} - {one.run for one in left})
        await _until_settled(models, settings.tenant, runs, progress, patience_s)
        new = {s.key.run: s.path for s in submissions if s.answer is not None and not s.answer.already}
        rows = await models.messages(tenant=settings.tenant, runs=sorted(new)) if new else []
        messages = [{**row, "path": new[row["run"]]} for row in rows]
    duplicates = [Duplicate(s.path, s.key.run) for s in submissions if s.answer is not None and s.answer.already]
    counts = dict(sorted(Counter(str(m["status"]) for m in messages).items()))
    return Report(messages, duplicates, skipped, counts, round(time.monotonic() - began, 3), left)


async def _take_in(
    installation: Installation, items: Iterable[Item | Skipped], progress: Progress, patience_s: float
) -> tuple[list[Submission], list[Skipped]]:
    settings, wiring = installation.settings, installation.wiring
    starts = Starts(
        wiring.connection,
        wiring.commands,
        wiring.objects,
        wiring.clock,
        tenant=settings.tenant,
        mailbox=settings.mailbox,
        actor="run",
        own_addresses=settings.never_answered,
        wait_when_full=True,
    )
    submissions: list[Submission] = []
    skipped: list[Skipped] = []
    async for one in starts.submit(items):
        if isinstance(one, Submission):
            submissions.append(one)
            progress.taken_in(len(submissions))
        else:
            skipped.append(one)
    if not await starts.until_answered(patience_s):
        raise NothingMoves(f"{starts.unanswered} mails were not answered for {patience_s:g} s; run the command again")
    return taken_or_refused(submissions, skipped)


async def _until_settled(
    models: ReadModels, tenant: str, runs: list[str], progress: Progress, patience_s: float
) -> None:
    """Until every run has ended or is held; the read models only tell when to look no more."""
    last, since = -1, time.monotonic()
    while True:
        try:
            settled = await models.settled(runs, tenant=tenant) if runs else 0
        except NoReadModels:
            settled = 0  # the projector is just making them
        progress.settled(settled, len(runs))
        if settled == len(runs):
            return
        if settled != last:
            last, since = settled, time.monotonic()
        elif time.monotonic() - since > patience_s:
            raise NothingMoves(
                f"{len(runs) - settled} runs did not move for {patience_s:g} s; `waybook why RUN` says more"
            )
        await asyncio.sleep(POLL_S)
