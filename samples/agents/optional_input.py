"""An optional input done right: the precondition says when to wait for it, so the step runs once.

Without the precondition `write` would run without the translation, and again when it comes. With the feature off the
precondition is true at once: a precondition that waits for what never comes is a run that never ends.
"""

from waybook.agents import Agent, AgentConfig, Event, StartEvent, StopEvent, precondition, step


class LetterConfig(AgentConfig, frozen=True, kw_only=True):
    translate: bool = False


class Letter(StartEvent, frozen=True, kw_only=True):
    text: str


class Checked(Event, frozen=True, kw_only=True):
    text: str


class Translated(Event, frozen=True, kw_only=True):
    text: str


class Printed(StopEvent, frozen=True, kw_only=True):
    text: str


@precondition
async def translation_is_there(translated: Translated | None, config: LetterConfig) -> bool:
    return not config.translate or translated is not None


class Printer(Agent):
    """Prints a letter, with its translation where that is wanted."""

    config = LetterConfig

    @step
    async def check(self, letter: Letter) -> Checked:
        return Checked(text=letter.text.strip())

    @step
    async def translate(self, letter: Letter, config: LetterConfig) -> Translated | None:
        return Translated(text=letter.text.strip()[::-1]) if config.translate else None

    @step(precondition=translation_is_there)
    async def write(self, checked: Checked, translated: Translated | None = None) -> Printed:
        return Printed(text=checked.text if translated is None else f"{checked.text} / {translated.text}")
