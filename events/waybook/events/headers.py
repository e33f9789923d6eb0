"""Names of the message headers that Waybook writes and reads."""

from collections.abc import Mapping

COMMIT = "Waybook-Commit"  # sha256(subject, expected sequence, payload), joined by NUL, in lower-case hexadecimal
PREVIOUS = "Waybook-Prev"  # commit id of the predecessor; absent on a run's first commit
DEFINITION = "Waybook-Definition"  # content hash of the definition that decided
TYPES = (
    "Waybook-Types"  # the types in a commit, each once, by first appearance; published ones as `EventPublished/Name`
)
SCHEMAS = (
    "Waybook-Schemas"  # "Type:version" of the types above version 1, comma separated; published ones by their name
)
CAUSATION = "Waybook-Causation"  # id of the command that caused it
CORRELATION = "Waybook-Correlation"  # id of the first command of the chain
PARENT = "Waybook-Parent"  # `agent/run/request` on every commit of a run that another one asked for
TRACEPARENT = "traceparent"  # W3C trace context
REPLY = "Waybook-Reply"  # subject on which a command's answer is awaited
REASON = "Waybook-Reason"  # why a command stands in DEAD
BURIAL = "Waybook-Burial"  # what kind of reason that is: rejected, convicted or undelivered
COMMAND = "Waybook-Command"  # id of a command that was moved to a lane; its Nats-Msg-Id is another
RECEIVED = "Waybook-Received"  # when COMMANDS got it first, before it was moved; ms since the epoch, UTC

MSG_ID = "Nats-Msg-Id"
EXPECTED_SUBJECT_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_STREAM = "Nats-Expected-Stream"

PUBLISHED = "EventPublished"


def types_of(headers: Mapping[str, str]) -> frozenset[str] | None:
    """The names that a commit's events go by, or None when the header is missing.

    A published event goes by `EventPublished` and by its own name, so both can be asked for without decoding
    the payload.
    """
    entries = headers.get(TYPES)
    if entries is None:
        return None
    names = set(entries.split(","))
    for entry in tuple(names):
        kind, slash, name = entry.partition("/")
        if slash:
            names.discard(entry)
            names.update((kind, name))
    return frozenset(names)


def command_of(headers: Mapping[str, str]) -> str | None:
    """The id of the command in a message of COMMANDS or DEAD, without a look at its payload."""
    return headers.get(COMMAND) or headers.get(MSG_ID)


def schemas_of(headers: Mapping[str, str]) -> dict[str, int]:
    """The schema versions above 1 that a commit's header names, by type."""
    entries = headers.get(SCHEMAS)
    if not entries:
        return {}
    return {name: int(version) for name, _, version in (entry.partition(":") for entry in entries.split(","))}
