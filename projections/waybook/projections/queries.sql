-- name: messages
-- Messages, newest first. Every filter that is null lets everything through.
SELECT
    run, tenant, agent, status, hold, hold_reason, hold_until, wake_at, sender AS "from", subject, date, received_at, updated_at,
    processed_at, ended_at, outcome, error_message, thread, version, walk, security_flags, classification,
    confidence_score, draft_subject, agent_decision, approval_source, archive_reason, failed_stage, flags,
    fields ->> 'answer_to' AS answer_to, fields ->> 'automated' AS automated, fields -> 'remarks' AS remarks
FROM {front}.inbound_messages
WHERE ($1::text IS NULL OR status = $1)
    AND ($2::text IS NULL OR hold = $2)
    AND ($3::text IS NULL OR agent = $3)
    AND ($4::text IS NULL OR tenant = $4)
    AND ($5::text IS NULL OR thread = $5)
    AND ($6::text[] IS NULL OR run = ANY ($6))
ORDER BY received_at DESC, sequence DESC
LIMIT $7;

-- name: message
-- One message with all that is known of it; several, where run ids of several agents or tenants are the same.
SELECT sender AS "from", m.* FROM {front}.inbound_messages AS m
WHERE run = $1
    AND ($2::text IS NULL OR agent = $2)
    AND ($3::text IS NULL OR tenant = $3);

-- name: message_counts
-- How many messages there are in each state.
SELECT status, count(*) AS messages FROM {front}.inbound_messages
WHERE ($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR tenant = $2)
GROUP BY status ORDER BY status;

-- name: actions
-- The attempts of a run, in the order in which they came up.
SELECT
    action, step, status, attempt, retry_count, exhausted, duration_ms, model_used, token_usage, error_type,
    error_message, started_at, ended_at, trigger, walk, branch, output, run, agent, tenant
FROM {front}.agent_actions
WHERE run = $1
    AND ($2::text IS NULL OR agent = $2)
    AND ($3::text IS NULL OR tenant = $3)
ORDER BY sequence, length(action), action;

-- name: approvals
-- Approvals, the longest waiting first; those whose time has passed at $5 are not pending any more.
SELECT
    run, approval, tenant, agent, shown AS status, action, resource, scope, summary, digest, requester, deciders, expires,
    policy, requested_at, decided_by, decided_at, reason, operation, revoked, revoked_at
FROM (
    SELECT *, CASE WHEN status = 'pending' AND expires <= $5 THEN 'expired' ELSE status END AS shown
    FROM {front}.approvals
) AS a
WHERE ($1::text IS NULL OR tenant = $1)
    AND ($2::text IS NULL OR agent = $2)
    AND ($3::text IS NULL OR run = $3)
    AND ($4::text IS NULL OR shown = $4)
ORDER BY requested_at, run, sequence, length(approval), approval
LIMIT $6;

-- name: operations
-- External side effects, the latest first; $4: only those that are open, disputed ones included.
SELECT
    run, operation, tenant, agent, name, status, disputed, settled_by, settled_at, evidence, action, generation, approval,
    digest, deadline, intended_at
FROM {front}.operations
WHERE ($1::text IS NULL OR tenant = $1)
    AND ($2::text IS NULL OR agent = $2)
    AND ($3::text IS NULL OR run = $3)
    AND (NOT $4::boolean OR status IN ('intended', 'unknown') OR disputed IS NOT NULL)
ORDER BY intended_at DESC, run, sequence DESC, operation
LIMIT $5;

-- name: position
-- How far a stream has been applied; null when it never was.
SELECT sequence FROM {front}.checkpoint WHERE stream = $1;

-- name: active_reader
-- Whether a projector holds the lock of a stream; the lock's key is split into two halves there.
SELECT EXISTS (
    SELECT 1 FROM pg_locks, hashtextextended($1, 0) AS wanted (key)
    WHERE locktype = 'advisory' AND objsubid = 1 AND database = (
        SELECT oid FROM pg_database WHERE datname = current_database()
    ) AND (classid::bigint << 32 | objid::bigint) = wanted.key
);

-- name: settled
-- How many of these runs have ended or are held.
SELECT count(*) AS settled FROM {front}.inbound_messages
WHERE run = ANY ($1) AND ($2::text IS NULL OR tenant = $2) AND (ended_at IS NOT NULL OR hold <> 'none');

-- name: open_runs
-- Runs that have not ended, with the definition that they began under; $1 null: of all tenants.
SELECT run, agent, tenant, definition, status, hold FROM {front}.inbound_messages
WHERE ended_at IS NULL AND ($1::text IS NULL OR tenant = $1) AND NOT (definition = ANY ($2))
ORDER BY received_at, run;

-- name: failed
-- Failed runs of an agent, those that failed first before the others. $3: only those in which this step failed; $4: only
-- those whose error holds this text.
SELECT run, agent, tenant, hold, hold_reason, hold_until, error_message FROM {front}.inbound_messages AS m
WHERE ended_at IS NULL AND status = 'failed' AND agent = $1 AND ($2::text IS NULL OR tenant = $2)
    AND ($3::text IS NULL OR EXISTS (
        SELECT 1 FROM {front}.agent_actions AS a
        WHERE a.run = m.run AND a.agent = m.agent AND a.tenant = m.tenant AND a.walk = m.walk AND a.step = $3
            AND a.status IN ('failed', 'abandoned')
    ))
    AND ($4::text IS NULL OR strpos(error_message, $4) > 0)
ORDER BY updated_at, run
LIMIT $5;

-- name: timers
-- All timers that runs wait for, soonest first.
SELECT run, timer, tenant, agent, class, due FROM {front}.timers ORDER BY due, run, timer;

-- name: standing_still
-- Open runs without a commit since $1 and without a named blocker. A read model knows no definition: $2 names, as
-- `agent:state`, the states in which the agents of $3 wait for somebody; in others nothing is waited for.
SELECT run, agent, tenant, sequence, definition FROM {front}.inbound_messages
WHERE ended_at IS NULL AND updated_at < $1 AND status <> 'failed' AND (
    hold = 'none'
    OR (hold = 'waiting' AND hold_reason = status AND agent = ANY ($3) AND NOT (agent || ':' || status = ANY ($2)))
)
ORDER BY updated_at;

-- name: unsent
-- Open runs of a tenant with a send that may not have begun.
SELECT run, agent, tenant FROM {front}.inbound_messages AS m
WHERE ended_at IS NULL AND tenant = $1 AND (
    status = 'approved' OR EXISTS (
        SELECT 1 FROM {front}.timers AS t
        WHERE t.run = m.run AND t.agent = m.agent AND t.tenant = m.tenant AND t.class = 'send'
    )
)
ORDER BY received_at, run;

-- name: beginning_with
-- Runs whose id begins with these characters.
SELECT run FROM {front}.inbound_messages
WHERE starts_with(run, $1) AND ($2::text IS NULL OR agent = $2) AND ($3::text IS NULL OR tenant = $3)
ORDER BY run LIMIT 20;

-- name: earlier_in_thread
-- The newest other messages of a thread from one address, with what a reader sees of each and the reply that was sent.
-- A text that the scan did not let pass, or a person alone did, is no context for another message.
SELECT m.run, m.sender, m.received_at, s.text, CASE WHEN m.status = 'sent' THEN m.draft_response END AS reply,
    m.processed_at
FROM {front}.inbound_messages AS m
CROSS JOIN LATERAL (
    SELECT left(o.value -> 'payload' ->> 'text', 20000) AS text
    FROM {front}.agent_actions AS a, jsonb_array_elements(a.output) AS o
    WHERE a.run = m.run AND a.agent = m.agent AND a.tenant = m.tenant
        AND a.step = 'security_scan' AND a.status = 'completed' AND o.value ->> 'event' = 'ScanPassed'
    ORDER BY a.sequence DESC LIMIT 1
) AS s
WHERE m.thread = $4 AND m.tenant = $1 AND m.agent = $2 AND m.run <> $5
    AND lower(left(coalesce(substring(m.sender FROM '<([^<>]*)>$'), m.sender), 320)) = $3
    AND NOT m.fields ? 'released_by'
    AND coalesce(m.security_flags ->> 'sender_verification', '') <> 'unverified'
ORDER BY m.received_at DESC, m.sequence DESC
LIMIT $6;

-- name: earlier_of_sender
-- Of the newest 50 messages from one address in other threads: those that share the most words with a text.
WITH asked AS (
    SELECT replace(plainto_tsquery('simple', $5)::text, ' & ', ' | ')::tsquery AS words
), found AS (
    SELECT run, agent, tenant, subject, received_at, sequence
    FROM {front}.inbound_messages
    WHERE lower(left(coalesce(substring(sender FROM '<([^<>]*)>$'), sender), 320)) = $3
        AND tenant = $1 AND agent = $2 AND run <> $6 AND thread IS DISTINCT FROM $4
        AND NOT fields ? 'released_by'
        AND coalesce(security_flags ->> 'sender_verification', '') <> 'unverified'
    ORDER BY received_at DESC, sequence DESC LIMIT 50
)
SELECT m.run, m.subject, m.received_at, s.text
FROM found AS m
CROSS JOIN asked
CROSS JOIN LATERAL (
    SELECT left(o.value -> 'payload' ->> 'text', 8000) AS text
    FROM {front}.agent_actions AS a, jsonb_array_elements(a.output) AS o
    WHERE a.run = m.run AND a.agent = m.agent AND a.tenant = m.tenant
        AND a.step = 'security_scan' AND a.status = 'completed' AND o.value ->> 'event' = 'ScanPassed'
    ORDER BY a.sequence DESC LIMIT 1
) AS s
ORDER BY ts_rank(to_tsvector('simple', coalesce(m.subject, '') || ' ' || s.text), asked.words, 1) DESC,
    m.received_at DESC, m.sequence DESC
LIMIT $7;
