"""Names of the message headers that Waybook writes and reads."""

COMMIT = "Waybook-Commit"  # base32(sha256(subject, expected sequence, payload))
PREVIOUS = "Waybook-Prev"  # commit id of the predecessor; absent on a run's first commit
DEFINITION = "Waybook-Definition"  # content hash of the definition that decided
TYPES = "Waybook-Types"  # event types of the commit, comma separated, in order
SCHEMAS = "Waybook-Schemas"  # "Type:version" of published events above version 1, comma separated
CAUSATION = "Waybook-Causation"  # id of the command that caused it
CORRELATION = "Waybook-Correlation"  # id of the first command of the chain
TRACEPARENT = "traceparent"  # W3C trace context
REPLY = "Waybook-Reply"  # subject on which a command's answer is awaited
REASON = "Waybook-Reason"  # why a command stands in DEAD

MSG_ID = "Nats-Msg-Id"
EXPECTED_SUBJECT_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_STREAM = "Nats-Expected-Stream"
