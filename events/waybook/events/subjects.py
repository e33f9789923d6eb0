"""Subjects of the streams, and the tokens they are made of."""

import hashlib
import re
from typing import Literal

import msgspec

from waybook.events.errors import InvalidInput

GENERATION = "g1"
SHARD = "00"
TOKEN = re.compile(r"[a-z0-9_-]{1,32}")
AGENT_TOKEN = re.compile(r"@?[a-z0-9_-]{1,32}")
RUN_TOKEN = re.compile(r"[a-z0-9_-]{1,64}")

_DIGITS = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [a + b for a in _DIGITS for b in _DIGITS]
_SHIFTS = range(250, -10, -10)

CommandClass = Literal["ctl", "new"]
Issuer = Literal["gw", "cli", "relay"]


class RunKey(msgspec.Struct, frozen=True, order=True):
    """Which run: its tenant, agent and run id. System aggregates are agents that begin with `@`."""

    tenant: str
    agent: str
    run: str

    def __str__(self) -> str:
        return f"{self.tenant}.{self.agent}.{self.run}"


class CommandSubject(msgspec.Struct, frozen=True):
    """A command subject, taken apart."""

    command_class: CommandClass
    lane: str
    issuer: Issuer
    key: RunKey
    verb: str


def check_token(field: str, value: str, pattern: re.Pattern[str] = TOKEN) -> str:
    """`value`, when it may stand as a token of a subject; InvalidInput naming `field` otherwise."""
    if not pattern.fullmatch(value):
        raise InvalidInput(f"{field} {value!r} may hold only a-z, 0-9, _ and - (pattern {pattern.pattern})")
    return value


def state_stream(generation: str = GENERATION, shard: str = SHARD) -> str:
    """Name of the stream that holds one generation and shard of STATE."""
    return f"STATE_{generation}_{shard}"


def state_subject(key: RunKey, generation: str = GENERATION, shard: str = SHARD) -> str:
    """The one literal subject that holds a run's commits."""
    return f"state.{generation}.{shard}.{key.tenant}.{key.agent}.{key.run}"


def parse_state_subject(subject: str) -> RunKey:
    """The run of a STATE subject; InvalidInput when it is not one."""
    parts = subject.split(".")
    if len(parts) != 6 or parts[0] != "state":
        raise InvalidInput(f"{subject!r} is not a subject of STATE")
    return RunKey(parts[3], parts[4], parts[5])


def command_subject(
    key: RunKey, verb: str, *, issuer: Issuer, command_class: CommandClass | None = None, lane: str = "any"
) -> str:
    """Subject of a command. The class is `new` for `start` and `ctl` for everything else, unless given."""
    kind = command_class or ("new" if verb == "start" else "ctl")
    return f"cmd.{kind}.{lane}.{issuer}.{key.tenant}.{key.agent}.{key.run}.{verb}"


def parse_command_subject(subject: str) -> CommandSubject:
    """The parts of a command subject; InvalidInput when it is not one."""
    parts = subject.split(".")
    if len(parts) != 8 or parts[0] != "cmd" or parts[1] not in ("ctl", "new") or parts[3] not in ("gw", "cli", "relay"):
        raise InvalidInput(f"{subject!r} is not a subject of COMMANDS")
    return CommandSubject(parts[1], parts[2], parts[3], RunKey(parts[4], parts[5], parts[6]), parts[7])  # type: ignore[arg-type]


def digest_token(*parts: str | bytes, length: int = 26) -> str:
    """The first `length` characters, lower case, of base32(sha256(parts joined by NUL))."""
    joined = b"\0".join([p.encode("utf-8", "surrogatepass") if isinstance(p, str) else p for p in parts])
    # 256 bits and 4 of padding are 26 pairs of base32 digits; base64.b32encode takes ten times as long.
    bits = int.from_bytes(hashlib.sha256(joined).digest(), "big") << 4
    return "".join([_PAIRS[(bits >> shift) & 1023] for shift in _SHIFTS])[:length]


def run_id(tenant: str, mailbox: str, identity: str | bytes) -> str:
    """The run id of a message: `identity` is its Message-ID or its canonical content."""
    return digest_token(tenant, mailbox, identity)
