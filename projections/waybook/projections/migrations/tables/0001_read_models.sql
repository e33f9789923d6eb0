-- The read models of one generation. Times are milliseconds since the epoch, UTC; durations are milliseconds.

-- How far each stream has been applied: the only position there is. `commit_id` is that of the last commit applied,
-- so that a stream that was replaced is noticed; `stored_at` is when the server stored it.
CREATE TABLE checkpoint (
    stream     text PRIMARY KEY,
    sequence   bigint NOT NULL,
    commit_id  text NOT NULL DEFAULT '',
    stored_at  bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 20);

-- One row a run. `sequence` is that of its last commit. `fields` holds the companion fields that its lifecycle set;
-- `progress` is what the handlers need for its next commit.
CREATE TABLE inbound_messages (
    tenant        text NOT NULL,
    agent         text NOT NULL,
    run           text NOT NULL,
    status        text NOT NULL,
    hold          text NOT NULL,
    hold_reason   text,
    hold_until    bigint,
    version       integer NOT NULL,
    walk          integer NOT NULL,
    sequence      bigint NOT NULL,
    updated_at    bigint NOT NULL,
    processed_at  bigint,
    ended_at      bigint,
    outcome       text,
    error_message text,
    progress      bytea NOT NULL,
    fields        jsonb NOT NULL DEFAULT '{}',
    definition    text NOT NULL,
    received_at   bigint NOT NULL,
    thread        text,
    parent        jsonb,
    content       text,
    flags         jsonb NOT NULL,
    sender        text,
    subject       text,
    date          text,
    PRIMARY KEY (run, agent, tenant)
) WITH (fillfactor = 70);

CREATE INDEX inbound_messages_received ON inbound_messages (received_at);

-- One row for each attempt at a step. `retry_count` counts the failures of (run, step) so far. `sequence` is that of
-- the commit in which the row appeared.
CREATE TABLE agent_actions (
    tenant        text NOT NULL,
    agent         text NOT NULL,
    run           text NOT NULL,
    action        text NOT NULL,
    step          text NOT NULL,
    trigger       text NOT NULL,
    walk          integer NOT NULL,
    attempt       integer NOT NULL,
    status        text NOT NULL,
    retry_count   integer NOT NULL,
    sequence      bigint NOT NULL,
    branch        text,
    deadline      bigint,
    started_at    bigint,
    exhausted     boolean NOT NULL,
    duration_ms   bigint,
    model_used    text,
    token_usage   jsonb,
    error_type    text,
    error_message text,
    ended_at      bigint,
    output        jsonb,
    PRIMARY KEY (run, action, agent, tenant)
) WITH (fillfactor = 85);
