-- name: drop_views
-- The views in front of the live generation; dropped and made anew in the transaction that swaps generations.
DROP VIEW IF EXISTS {front}.inbound_messages, {front}.agent_actions, {front}.approvals, {front}.timers,
    {front}.operations, {front}.checkpoint;

-- name: create_messages_view
-- Companion fields that the documents name get a column each; all of them stay in `fields`.
CREATE VIEW {front}.inbound_messages AS
SELECT
    run, tenant, agent, status, hold, hold_reason, hold_until, version, walk, sequence,
    sender, subject, date, received_at, updated_at, processed_at, ended_at, outcome, error_message,
    thread, parent, content, flags, definition,
    nullif(fields -> 'security_flags', 'null') AS security_flags,
    nullif(fields -> 'classification', 'null') AS classification,
    CASE jsonb_typeof(fields -> 'confidence_score')
        WHEN 'number' THEN (fields ->> 'confidence_score')::float8
    END AS confidence_score,
    fields ->> 'context_tier' AS context_tier,
    nullif(fields -> 'context_coverage', 'null') AS context_coverage,
    nullif(fields -> 'grounding_sources', 'null') AS grounding_sources,
    fields ->> 'draft_subject' AS draft_subject,
    fields ->> 'draft_response' AS draft_response,
    nullif(fields -> 'draft_options', 'null') AS draft_options,
    nullif(fields -> 'draft_quality', 'null') AS draft_quality,
    nullif(fields -> 'attachment_suggestions', 'null') AS attachment_suggestions,
    nullif(fields -> 'draft_revisions', 'null') AS draft_revisions,
    nullif(fields -> 'draft_saved_at', 'null') AS draft_saved_at,
    fields -> 'is_draft_edited' = 'true' AS is_draft_edited,
    nullif(fields -> 'agent_decision', 'null') AS agent_decision,
    nullif(fields -> 'pending_clarification', 'null') AS pending_clarification,
    fields -> 'is_auto_send_blocked' = 'true' AS is_auto_send_blocked,
    nullif(fields -> 'pending_auto_send', 'null') AS pending_auto_send,
    fields ->> 'approval_source' AS approval_source,
    fields ->> 'failed_stage' AS failed_stage,
    nullif(fields -> 'manual_takeover_at', 'null') AS manual_takeover_at,
    fields ->> 'archive_reason' AS archive_reason,
    (
        SELECT min(t.due) FROM {tables}.timers AS t WHERE t.run = m.run AND t.agent = m.agent AND t.tenant = m.tenant
    ) AS wake_at,
    fields
FROM {tables}.inbound_messages AS m;

-- name: create_actions_view
-- Attempts, as they stand in the live generation.
CREATE VIEW {front}.agent_actions AS
SELECT
    run, action, tenant, agent, step, status, attempt, retry_count, exhausted, duration_ms, model_used, token_usage,
    error_type, error_message, started_at, ended_at, trigger, walk, branch, deadline, output, sequence
FROM {tables}.agent_actions;

-- name: create_approvals_view
-- Approvals, as they stand in the live generation.
CREATE VIEW {front}.approvals AS
SELECT
    run, approval, tenant, agent, status, action, resource, scope, summary, digest, requester, deciders, expires, policy,
    requested_at, decided_by, decided_at, reason, operation, revoked, revoked_at, sequence
FROM {tables}.approvals;

-- name: create_timers_view
-- Timers that runs wait for.
CREATE VIEW {front}.timers AS
SELECT run, timer, tenant, agent, class, due, about FROM {tables}.timers;

-- name: create_operations_view
-- External side effects, as they stand in the live generation.
CREATE VIEW {front}.operations AS
SELECT
    run, operation, tenant, agent, name, status, disputed, settled_by, settled_at, evidence, action, generation, digest,
    approval, deadline, intended_at, sequence
FROM {tables}.operations;

-- name: create_checkpoint_view
-- How far the live generation is.
CREATE VIEW {front}.checkpoint AS
SELECT stream, sequence, commit_id, stored_at, updated_at FROM {tables}.checkpoint;
