-- name: messages_by_key
-- All rows in an order that does not depend on the database's collation.
SELECT * FROM inbound_messages
ORDER BY tenant COLLATE "C", agent COLLATE "C", run COLLATE "C";

-- name: actions_by_key
-- All rows in an order that does not depend on the database's collation.
SELECT * FROM agent_actions
ORDER BY tenant COLLATE "C", agent COLLATE "C", run COLLATE "C", action COLLATE "C";

-- name: approvals_by_key
-- All rows in an order that does not depend on the database's collation.
SELECT * FROM approvals
ORDER BY tenant COLLATE "C", agent COLLATE "C", run COLLATE "C", approval COLLATE "C";

-- name: timers_by_key
-- All rows in an order that does not depend on the database's collation.
SELECT * FROM timers
ORDER BY tenant COLLATE "C", agent COLLATE "C", run COLLATE "C", timer COLLATE "C";

-- name: operations_by_key
-- All rows in an order that does not depend on the database's collation.
SELECT * FROM operations
ORDER BY tenant COLLATE "C", agent COLLATE "C", run COLLATE "C", operation COLLATE "C";

-- name: checkpoints
-- How far the tables are, within the snapshot that is compared.
SELECT stream, sequence FROM checkpoint;
