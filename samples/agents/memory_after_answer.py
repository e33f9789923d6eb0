"""A step after the answer: what has to happen before the run may end returns an event that the last step waits for.

`reply` returns a plain event and no stop: a stop event ends the run at once, and nothing could be remembered any more.
The thread context keeps a small number from run to run.
"""

from waybook.agents import Agent, Event, StartEvent, StopEvent, ThreadContext, step


class Said(StartEvent, frozen=True, kw_only=True):
    text: str


class Reply(Event, frozen=True, kw_only=True):
    text: str


class Remembered(Event, frozen=True, kw_only=True):
    times: int


class Ended(StopEvent, frozen=True, kw_only=True):
    text: str
    times: int


class Talker(Agent):
    """Answers, remembers that it did, and only then ends."""

    @step
    async def reply(self, said: Said) -> Reply:
        return Reply(text=f"You said {said.text}.")

    @step
    async def remember(self, reply: Reply, thread: ThreadContext) -> Remembered:
        return Remembered(times=thread.increment("talks"))

    @step
    async def end(self, reply: Reply, remembered: Remembered) -> Ended:
        return Ended(text=reply.text, times=remembered.times)
