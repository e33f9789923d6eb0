"""A LlamaIndex "reflection" workflow as an agent: extract, validate, and try again with what was wrong.

There a step loops by returning an event that an earlier step takes, and counts its tries in `ctx.store`. Here the loop is
the same; the count is an atomic counter of the run context, and the text is not put into the context: whoever needs the
start event takes it. `parse` stands for a call of a model.
"""

import json

from waybook.agents import Agent, Event, RunContext, StartEvent, StopEvent, step

TRIES = 3
"""So often is the model asked at most."""


class Passage(StartEvent, frozen=True, kw_only=True):
    text: str


class Extraction(Event, frozen=True, kw_only=True):
    output: str


class Invalid(Event, frozen=True, kw_only=True):
    output: str
    error: str


class Cars(StopEvent, frozen=True, kw_only=True):
    brands: list[str]
    error: str = ""


def parse(text: str, remark: str = "") -> str:
    """What a model makes of a text: at first something that is nearly JSON."""
    brands = [word.strip(".,") for word in text.split() if word[:1].isupper()]
    return json.dumps({"brands": brands}) if remark else f"Here you are: {brands}"


class Extractor(Agent):
    """Makes structured data of a passage, and has the model look at its own mistakes."""

    @step
    async def extract(self, passage: Passage) -> Extraction:
        return Extraction(output=parse(passage.text))

    @step(max_executions=TRIES)
    async def validate(self, extraction: Extraction, run: RunContext) -> Invalid | Cars:
        try:
            return Cars(brands=json.loads(extraction.output)["brands"])
        except (ValueError, KeyError) as error:
            if run.increment("tries") == TRIES:
                return Cars(brands=[], error=f"no valid JSON after {TRIES} tries: {error}")
            return Invalid(output=extraction.output, error=str(error))

    @step
    async def reflect(self, invalid: Invalid, passage: Passage) -> Extraction:
        return Extraction(output=parse(passage.text, remark=f"{invalid.output} is wrong: {invalid.error}"))
