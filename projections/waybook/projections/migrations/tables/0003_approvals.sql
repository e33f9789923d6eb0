-- One row for each approval that a run asked for. `digest` is that of what is approved; `decided_at` is when the
-- decision was received; `revoked` says why it does not stand any more.
CREATE TABLE approvals (
    tenant       text NOT NULL,
    agent        text NOT NULL,
    run          text NOT NULL,
    approval     text NOT NULL,
    status       text NOT NULL,
    decided_by   text,
    decided_at   bigint,
    reason       text,
    operation    text,
    revoked      text,
    revoked_at   bigint,
    action       text NOT NULL,
    resource     text NOT NULL,
    scope        text NOT NULL,
    digest       text NOT NULL,
    requester    text NOT NULL,
    deciders     jsonb NOT NULL,
    expires      bigint,
    policy       integer NOT NULL,
    summary      text,
    requested_at bigint NOT NULL,
    sequence     bigint NOT NULL,
    PRIMARY KEY (run, approval, agent, tenant)
) WITH (fillfactor = 85);

CREATE INDEX approvals_pending ON approvals (requested_at) WHERE status = 'pending';
