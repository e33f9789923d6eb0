-- name: insert_operations
-- Operations that the batch intended, whole. One that was intended before surely did not happen; the new intent stands.
INSERT INTO operations (
    tenant, agent, run, operation, status, settled_by, settled_at, evidence, disputed,
    name, action, generation, digest, approval, deadline, intended_at, sequence
)
SELECT
    tenant, agent, run, operation, coalesce(status, 'intended'), settled_by, settled_at, evidence::jsonb,
    nullif(disputed, ''), name, action, generation, digest, approval, deadline, intended_at, sequence
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::int[], $13::text[], $14::text[], $15::bigint[], $16::bigint[], $17::bigint[]
) AS s (
    tenant, agent, run, operation, status, settled_by, settled_at, evidence, disputed,
    name, action, generation, digest, approval, deadline, intended_at, sequence
)
ON CONFLICT (run, operation, agent, tenant) DO UPDATE SET
    status = excluded.status, settled_by = excluded.settled_by, settled_at = excluded.settled_at,
    evidence = excluded.evidence, disputed = excluded.disputed,
    name = excluded.name, action = excluded.action, generation = excluded.generation, digest = excluded.digest,
    approval = excluded.approval, deadline = excluded.deadline, intended_at = excluded.intended_at,
    sequence = excluded.sequence;

-- name: patch_operations
-- What became of operations that are there; what a commit says nothing of stays. An empty dispute is none any more.
UPDATE operations AS o SET
    status = coalesce(s.status, o.status),
    settled_by = coalesce(s.settled_by, o.settled_by),
    settled_at = coalesce(s.settled_at, o.settled_at),
    evidence = coalesce(s.evidence::jsonb, o.evidence),
    disputed = nullif(coalesce(s.disputed, o.disputed), '')
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[]
) AS s (tenant, agent, run, operation, status, settled_by, settled_at, evidence, disputed)
WHERE o.run = s.run AND o.operation = s.operation AND o.agent = s.agent AND o.tenant = s.tenant;
