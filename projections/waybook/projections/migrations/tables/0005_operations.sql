-- One row for each external side effect of a run, its newest intent. Parameters are not here: they may be personal.
-- `deadline` is when its call had to be over; `disputed` is an outcome that contradicts `status`.
CREATE TABLE operations (
    tenant      text NOT NULL,
    agent       text NOT NULL,
    run         text NOT NULL,
    operation   text NOT NULL,
    status      text NOT NULL,
    settled_by  text,
    settled_at  bigint,
    evidence    jsonb,
    disputed    text,
    name        text NOT NULL,
    action      text NOT NULL,
    generation  integer NOT NULL,
    digest      text NOT NULL,
    approval    text,
    deadline    bigint NOT NULL,
    intended_at bigint NOT NULL,
    sequence    bigint NOT NULL,
    PRIMARY KEY (run, operation, agent, tenant)
) WITH (fillfactor = 85);

CREATE INDEX operations_open ON operations (intended_at) WHERE status IN ('intended', 'unknown') OR disputed IS NOT NULL;
