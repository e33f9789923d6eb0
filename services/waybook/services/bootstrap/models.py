"""The models of a process, from the settings: connections and local servers live as long as the block."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from waybook.adapters.models.rules import RulesModel
from waybook.agents.model import Model
from waybook.engine.ports import Notes
from waybook.inbox.settings import Models
from waybook.services.bootstrap.model_choice import (
    LOCAL_TIMEOUT_S,
    TIMEOUT_S,
    Choice,
    Local,
    Remote,
    choices,
)
from waybook.services.bootstrap.model_settings import RoleName
from waybook.services.bootstrap.model_trace import model_trace
from waybook.services.bootstrap.settings import Settings

LOCAL_SLOTS = 2
"""Mails that are walked side by side with a local model: it answers one question at a time, and a step has a deadline."""


def is_slow(settings: Settings) -> bool:
    """Whether a step may take minutes: any model but the rules."""
    return settings.model != "rules" or any(one.model or one.url for one in settings.models.roles.values())


def slots(settings: Settings) -> int:
    """How many mails are walked side by side. Raises as `choices`."""
    if is_slow(settings) and any(isinstance(one, Local) for one in choices(settings).values()):
        return min(settings.slots, LOCAL_SLOTS)
    return settings.slots


@asynccontextmanager
async def models_at_work(settings: Settings, notes: Notes) -> AsyncIterator[Models]:
    """The models by role. A local model is loaded first. Raises InvalidInput as `choices`, ModelUnavailable."""
    chosen = choices(settings)
    built: list[tuple[Choice, Model]] = []
    async with AsyncExitStack() as stack:
        for choice in chosen.values():
            if choice not in [known for known, _ in built]:
                built.append((choice, await _build(settings, choice, stack)))
        by_role: dict[RoleName, Model] = {
            role: next(model for known, model in built if known == choice) for role, choice in chosen.items()
        }
        traced = settings.models.trace and any(choice != "rules" for choice in chosen.values())
        yield Models(
            extraction=by_role["extraction"],
            classify=by_role["classify"],
            draft=by_role["draft"],
            self_check=by_role["self_check"],
            guard=by_role.get("guard"),
            watch=model_trace(notes) if traced else None,
        )


async def _build(settings: Settings, choice: Choice, stack: AsyncExitStack) -> Model:
    if isinstance(choice, Remote):
        return await _remote(settings, choice, stack)
    if isinstance(choice, Local):
        return await _local(settings, choice, stack)
    return RulesModel()


async def _remote(settings: Settings, choice: Remote, stack: AsyncExitStack) -> Model:
    from waybook.adapters.models.openai_compatible import Endpoint, OpenAICompatible

    given = settings.models
    endpoint = Endpoint(
        url=choice.url,
        name=choice.name,
        key=choice.key(),
        key_env=choice.key_env or "",
        timeout_s=given.timeout_s or TIMEOUT_S,
        connect_s=given.connect_s,
        at_once=given.at_once,
        structured=given.structured,
        max_tokens={role: one.max_tokens for role, one in given.roles.items() if one.max_tokens is not None},
        temperature={role: one.temperature for role, one in given.roles.items() if one.temperature is not None},
        tokens_field=choice.tokens_field,
    )
    model = OpenAICompatible(endpoint)
    stack.push_async_callback(model.aclose)
    return model


async def _local(settings: Settings, choice: Local, stack: AsyncExitStack) -> Model:
    from waybook.adapters.models.local import LocalModel
    from waybook.adapters.models.local_server import LocalServer

    given = settings.models
    server = LocalServer(
        choice.file, threads=given.local.threads, context=given.local.context, start_s=given.local.start_s
    )
    model = LocalModel(
        server,
        timeout_s=given.timeout_s or LOCAL_TIMEOUT_S,
        prompt_tokens=given.local.prompt_tokens,
        most_sure=given.local.most_sure,
    )
    stack.push_async_callback(model.aclose)
    await model.start()
    return model
