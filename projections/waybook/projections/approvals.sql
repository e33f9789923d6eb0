-- name: insert_approvals
-- Approvals that the batch asked for, whole; a row that is there already is the same one.
INSERT INTO approvals (
    tenant, agent, run, approval,
    status, decided_by, decided_at, reason, operation, revoked, revoked_at,
    action, resource, scope, digest, requester, deciders, expires, policy, summary, requested_at, sequence
)
SELECT
    tenant, agent, run, approval,
    status, decided_by, decided_at, reason, operation, revoked, revoked_at,
    action, resource, scope, digest, requester, deciders::jsonb, expires, policy, summary, requested_at, sequence
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[],
    $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::bigint[],
    $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[], $19::int[],
    $20::text[], $21::bigint[], $22::bigint[]
) AS s (
    tenant, agent, run, approval,
    status, decided_by, decided_at, reason, operation, revoked, revoked_at,
    action, resource, scope, digest, requester, deciders, expires, policy, summary, requested_at, sequence
)
ON CONFLICT DO NOTHING;

-- name: patch_approvals
-- What became of approvals that are there; what a commit says nothing of stays.
UPDATE approvals AS a SET
    status = s.status,
    decided_by = coalesce(s.decided_by, a.decided_by),
    decided_at = coalesce(s.decided_at, a.decided_at),
    reason = coalesce(s.reason, a.reason),
    operation = coalesce(s.operation, a.operation),
    revoked = coalesce(s.revoked, a.revoked),
    revoked_at = coalesce(s.revoked_at, a.revoked_at)
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[],
    $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::bigint[]
) AS s (tenant, agent, run, approval, status, decided_by, decided_at, reason, operation, revoked, revoked_at)
WHERE a.run = s.run AND a.approval = s.approval AND a.agent = s.agent AND a.tenant = s.tenant;
