"""Subjects of the streams, and the tokens they are made of."""

import hashlib
import re
from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from waybook.events.errors import InvalidInput

ANY = "any"
"""The lane of commands that any worker may take up; other lanes are named by the hash of a definition."""

GENERATION = "g1"
SHARD = "00"
TOKEN = re.compile(r"[a-z0-9_-]{1,32}")
AGENT_TOKEN = re.compile(r"@?[a-z0-9_-]{1,32}")
RUN_TOKEN = re.compile(r"[a-z0-9_-]{1,64}")

_DIGITS = b"abcdefghijklmnopqrstuvwxyz234567" + bytes(224)


def _spread_masks() -> tuple[tuple[int, int, int], ...]:
    """Shift and masks by which 64 groups of 5 bits become 64 bytes: groups of 32, of 16, ... move apart."""
    steps = []
    for groups in (32, 16, 8, 4, 2, 1):
        width, field, count = 5 * groups, 16 * groups, 32 // groups
        low = sum(((1 << width) - 1) << (field * n) for n in range(count))
        steps.append((3 * groups, low << width, low))
    return tuple(steps)


_SPREAD = _spread_masks()

CommandClass = Literal["ctl", "new", "step"]

CLASSES: Mapping[str, CommandClass] = {"start": "new", "exec": "step"}
"""Work has classes of its own, so that a decision waits neither behind starts nor behind the offered steps of a wide
run, and a start not behind those."""
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
    key: RunKey, verb: str, *, issuer: Issuer, command_class: CommandClass | None = None, lane: str = ANY
) -> str:
    """Subject of a command. The class is that of its verb (`CLASSES`) and `ctl` where it has none there, unless given."""
    kind = command_class or CLASSES.get(verb, "ctl")
    return f"cmd.{kind}.{lane}.{issuer}.{key.tenant}.{key.agent}.{key.run}.{verb}"


def parse_command_subject(subject: str) -> CommandSubject:
    """The parts of a command subject; InvalidInput when it is not one."""
    parts = subject.split(".")
    if (
        len(parts) != 8
        or parts[0] != "cmd"
        or parts[1] not in get_args(CommandClass)
        or parts[3] not in ("gw", "cli", "relay")
    ):
        raise InvalidInput(f"{subject!r} is not a subject of COMMANDS")
    return CommandSubject(parts[1], parts[2], parts[3], RunKey(parts[4], parts[5], parts[6]), parts[7])  # type: ignore[arg-type]


def timer_subject(key: RunKey, name: str, timer_class: str, *, fired: bool = False) -> str:
    """Subject of one timer in TIMERS, armed or fired; `*` as the class stands for all of them."""
    return f"timer.{'fire' if fired else 'arm'}.{timer_class}.{key.tenant}.{key.agent}.{key.run}.{name}"


def parse_timer_subject(subject: str) -> tuple[RunKey, str, str]:
    """Run, name and class of a timer's subject; InvalidInput when it is not one."""
    parts = subject.split(".")
    if len(parts) != 8 or parts[0] != "timer" or parts[1] not in ("arm", "fire"):
        raise InvalidInput(f"{subject!r} is not a subject of TIMERS")
    return RunKey(parts[3], parts[4], parts[5]), f"{parts[6]}.{parts[7]}", parts[2]


def dead_subject(subject: str) -> str:
    """Where DEAD keeps a command that was published on `subject`."""
    return f"dead.{subject}"


def dead_subjects(key: RunKey) -> str:
    """All commands of a run in DEAD, as a filter."""
    return dead_subject(f"cmd.*.*.*.{key.tenant}.{key.agent}.{key.run}.*")


def digest_token(*parts: str | bytes, length: int = 26) -> str:
    """The first `length` characters, lower case, of base32(sha256(parts joined by NUL))."""
    joined = b"\0".join([p.encode("utf-8", "surrogatepass") if isinstance(p, str) else p for p in parts])
    return _base32(hashlib.sha256(joined).digest())[:length]


def _base32(digest: bytes) -> str:
    # 256 bits and 64 of padding are 64 digits of 5 bits, spread to a byte each by halving: base64.b32encode takes
    # twenty times as long.
    bits = int.from_bytes(digest, "big") << 64
    for shift, high, low in _SPREAD:
        bits = ((bits & high) << shift) | (bits & low)
    return bits.to_bytes(64, "big").translate(_DIGITS).decode("ascii")


def run_id(tenant: str, mailbox: str, identity: str | bytes) -> str:
    """The run id of a message: `identity` is its Message-ID or its canonical content."""
    return digest_token(tenant, mailbox, identity)


def reused_run_id(tenant: str, mailbox: str, identity: str | bytes, content: str) -> str:
    """The run id of a message whose identity another one has with other content; `content` is its digest."""
    return digest_token(tenant, mailbox, identity, content)
