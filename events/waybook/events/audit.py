"""Records on their way to the auditor (AUDITIN): what leaves no trace in STATE, and has to be proved all the same.

What STATE holds (accepted commands, decisions, changes of policy and grants) the auditor reads there.
"""

import msgspec


class _Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """Base of all records; the JSON member `kind` says which. `at` in ms, UTC; `actor` who did or tried it."""

    actor: str
    at: int


class CommandRefused(_Record, frozen=True, kw_only=True, tag="command_refused"):
    """Somebody tried to change a run and was refused; its state is untouched.

    `reason` is a stable word, `text` for people. `issuer`: by which way the command came. `received_at`: when it was
    stored, by the server's clock.
    """

    run: str
    command: str
    verb: str
    reason: str
    text: str
    issuer: str = ""
    received_at: int | None = None


class Accessed(_Record, frozen=True, kw_only=True, tag="accessed"):
    """Somebody looked at data of a person. `what` names the kind of data, `run` whose it is where there is one."""

    what: str
    run: str = ""
    reason: str | None = None


class ConfigurationChanged(_Record, frozen=True, kw_only=True, tag="configuration_changed"):
    """Settings changed outside STATE. `values` hold the new ones, secrets left out."""

    what: str
    values: dict[str, str] = {}


AuditRecord = CommandRefused | Accessed | ConfigurationChanged


def encode_record(record: AuditRecord) -> bytes:
    """The record as JSON."""
    return msgspec.json.encode(record)


def decode_record(data: bytes) -> AuditRecord:
    """The record of these bytes; msgspec.DecodeError when they hold none."""
    return msgspec.json.decode(data, type=AuditRecord)
