-- name: drop_actions
-- Pending rows whose attempt has begun under its own id.
DELETE FROM agent_actions AS a
USING unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS s (tenant, agent, run, action)
WHERE a.run = s.run AND a.action = s.action AND a.agent = s.agent AND a.tenant = s.tenant;

-- name: insert_actions
-- Attempts that began or became due in the batch, whole. A conflict is a row left by hand: the log wins.
INSERT INTO agent_actions AS a (
    tenant, agent, run, action, step, trigger, walk, attempt, status, retry_count, sequence, branch, deadline,
    started_at, exhausted, duration_ms, model_used, token_usage, error_type, error_message, ended_at, output
)
SELECT
    tenant, agent, run, action, step, trigger, walk, attempt, status, retry_count, sequence, branch, deadline,
    started_at, exhausted, duration_ms, model_used, token_usage::jsonb, error_type, error_message, ended_at,
    output::jsonb
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::int[], $9::text[],
    $10::int[], $11::bigint[], $12::text[], $13::bigint[], $14::bigint[], $15::boolean[], $16::bigint[], $17::text[],
    $18::text[], $19::text[], $20::text[], $21::bigint[], $22::text[]
) AS s (
    tenant, agent, run, action, step, trigger, walk, attempt, status, retry_count, sequence, branch, deadline,
    started_at, exhausted, duration_ms, model_used, token_usage, error_type, error_message, ended_at, output
)
ON CONFLICT (run, action, agent, tenant) DO UPDATE SET
    step = excluded.step, trigger = excluded.trigger, walk = excluded.walk, attempt = excluded.attempt,
    status = excluded.status, retry_count = excluded.retry_count, sequence = excluded.sequence,
    branch = excluded.branch, deadline = excluded.deadline, started_at = excluded.started_at,
    exhausted = excluded.exhausted, duration_ms = excluded.duration_ms, model_used = excluded.model_used,
    token_usage = excluded.token_usage, error_type = excluded.error_type, error_message = excluded.error_message,
    ended_at = excluded.ended_at, output = excluded.output;

-- name: patch_actions
-- How attempts that began earlier ended. A count that is null keeps the row's.
UPDATE agent_actions AS a SET
    status = s.status, retry_count = coalesce(s.retry_count, a.retry_count), exhausted = s.exhausted,
    duration_ms = s.duration_ms, model_used = s.model_used, token_usage = s.token_usage::jsonb,
    error_type = s.error_type, error_message = s.error_message, ended_at = s.ended_at, output = s.output::jsonb
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::boolean[], $8::bigint[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::bigint[], $14::text[]
) AS s (
    tenant, agent, run, action, status, retry_count, exhausted, duration_ms, model_used, token_usage, error_type,
    error_message, ended_at, output
)
WHERE a.run = s.run AND a.action = s.action AND a.agent = s.agent AND a.tenant = s.tenant;
