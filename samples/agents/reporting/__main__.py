"""Asks for a report and waits for its end: `python -m samples.agents.reporting sales board@example.org`."""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
from samples.agents.reporting.agent import Reporting
from samples.agents.reporting.events import ReportAsked
from samples.agents.reporting.figures import Figures, FixedFigures

from waybook.adapters.effects.smtp import SmtpSend
from waybook.agents.definition import define
from waybook.engine.hold import hold
from waybook.engine.ports import Objects
from waybook.events.codec import Codec
from waybook.events.command import StartPayload
from waybook.events.errors import WaybookError
from waybook.events.subjects import RunKey
from waybook.services.bootstrap.installation import Installation, owned, projecting, walking
from waybook.services.bootstrap.scheduling import scheduling
from waybook.services.bootstrap.settings import Settings
from waybook.services.commanding.client import CommandClient
from waybook.services.walker.lifecycle import Lifecycle

LOOK_S = 0.1


async def main(asked: ReportAsked, smtp: str, data_dir: Path | None) -> None:
    """Servers, a walker, a scheduler and the read models, until the run is over."""
    settings = Settings.load()
    agent = define(Reporting).with_retry_grid(round(settings.retry_grid_s * 1000))
    host, _, port = smtp.rpartition(":")
    async with owned(settings, "reporting", data_dir) as installation:
        objects = installation.wiring.objects
        mail = SmtpSend(host, int(port), sender="reports@example.org", tls="none", objects=objects)
        provides: dict[type, Any] = {Figures: FixedFigures(), Objects: objects}
        async with (
            walking(installation, [agent], provides, effects={"mail": mail}),
            scheduling(installation, [agent]),
            projecting(installation),
        ):
            await start(installation, asked)
            await until_over(installation, asked.topic)


async def start(installation: Installation, asked: ReportAsked) -> None:
    """One run for each topic: asking again for the same report finds the run that is there."""
    wiring = installation.wiring
    client = CommandClient(wiring.connection, wiring.commands, wiring.state, wiring.clock, issuer="cli")
    payload = StartPayload(event="ReportAsked", body=msgspec.Raw(msgspec.json.encode(asked)), id=asked.topic)
    key = RunKey(installation.settings.tenant, Reporting.name, asked.topic)
    await client.give(key, "start", payload, actor="reporting", command=f"ask-{asked.topic}")


async def until_over(installation: Installation, topic: str) -> None:
    """Prints where the run is whenever that changes."""
    wiring = installation.wiring
    lifecycle = Lifecycle(wiring.state, Codec(), wiring.clock, "reporting")
    engine, said = define(Reporting).engine, ""
    while True:
        run = await lifecycle.load(RunKey(installation.settings.tenant, Reporting.name, topic))
        if run is not None:
            held = hold(engine, run)
            line = run.state if run.ended or held.kind == "none" else f"{run.state}: {held.text}"
            if line != said:
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
                said = line
            if run.ended:
                return
        await asyncio.sleep(LOOK_S)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m samples.agents.reporting", description=__doc__)
    parser.add_argument("topic", help="what the report is about; also the name of its run")
    parser.add_argument("recipients", nargs="+", help="mail addresses")
    parser.add_argument("--smtp", default="127.0.0.1:8025", help="the mail server, HOST:PORT")
    parser.add_argument("--data-dir", type=Path, help="where the servers keep what they know")
    given = parser.parse_args()
    try:
        asyncio.run(
            main(ReportAsked(topic=given.topic, recipients=tuple(given.recipients)), given.smtp, given.data_dir)
        )
    except KeyboardInterrupt:
        sys.exit("interrupted; what was committed stands: give the same command again to go on")
    except WaybookError as error:
        sys.exit(str(error))
