"""Configuration that steps may ask for: of the whole agent, and of one step."""

import msgspec


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Base of an agent's configuration; name the subclass in `Agent.config`.

    A run keeps the configuration that it was started with: a change is seen by later runs only. Values that do not
    fit the fields end the run at once, visibly, before any step.
    """


class StepConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Base of a step's own configuration, given with `@step(config=...)` and asked for by its class."""
