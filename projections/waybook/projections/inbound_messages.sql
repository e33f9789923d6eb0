-- name: insert_messages
-- Rows of runs that started in the batch, whole; they had no progress, so they have no row.
INSERT INTO inbound_messages (
    tenant, agent, run,
    status, hold, hold_reason, hold_until, version, walk, sequence, updated_at,
    processed_at, ended_at, outcome, error_message, progress, fields,
    definition, received_at, thread, parent, content, flags, sender, subject, date
)
SELECT
    tenant, agent, run,
    status, hold, hold_reason, hold_until, version, walk, sequence, updated_at,
    processed_at, ended_at, outcome, error_message, progress, fields::jsonb,
    definition, received_at, thread, parent::jsonb, content, flags::jsonb, sender, subject, date
FROM unnest(
    $1::text[], $2::text[], $3::text[],
    $4::text[], $5::text[], $6::text[], $7::bigint[], $8::int[], $9::int[], $10::bigint[], $11::bigint[],
    $12::bigint[], $13::bigint[], $14::text[], $15::text[], $16::bytea[], $17::text[],
    $18::text[], $19::bigint[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[], $25::text[], $26::text[]
) AS s (
    tenant, agent, run,
    status, hold, hold_reason, hold_until, version, walk, sequence, updated_at,
    processed_at, ended_at, outcome, error_message, progress, fields,
    definition, received_at, thread, parent, content, flags, sender, subject, date
);

-- name: patch_messages
-- What later commits change of rows that are there; `fields` are merged, a null among them stays as a null.
UPDATE inbound_messages AS m SET
    status = s.status, hold = s.hold, hold_reason = s.hold_reason, hold_until = s.hold_until,
    version = s.version, walk = s.walk, sequence = s.sequence, updated_at = s.updated_at,
    processed_at = s.processed_at, ended_at = s.ended_at, outcome = s.outcome, error_message = s.error_message,
    progress = s.progress,
    fields = CASE WHEN s.fields IS NULL THEN m.fields ELSE m.fields || s.fields::jsonb END
FROM unnest(
    $1::text[], $2::text[], $3::text[],
    $4::text[], $5::text[], $6::text[], $7::bigint[], $8::int[], $9::int[], $10::bigint[], $11::bigint[],
    $12::bigint[], $13::bigint[], $14::text[], $15::text[], $16::bytea[], $17::text[]
) AS s (
    tenant, agent, run,
    status, hold, hold_reason, hold_until, version, walk, sequence, updated_at,
    processed_at, ended_at, outcome, error_message, progress, fields
)
WHERE m.run = s.run AND m.agent = s.agent AND m.tenant = s.tenant;

-- name: read_progress
-- The bookkeeping of the batch's runs, as far as they have rows; `ordinal` is the place in the question, from 1.
SELECT k.ordinal, m.progress
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k (tenant, agent, run, ordinal)
JOIN inbound_messages AS m ON m.run = k.run AND m.agent = k.agent AND m.tenant = k.tenant;
