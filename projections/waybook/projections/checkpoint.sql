-- name: read_checkpoint
-- The position of a stream.
SELECT sequence, commit_id, stored_at FROM checkpoint WHERE stream = $1;

-- name: create_checkpoint
-- A stream that was never read.
INSERT INTO checkpoint (stream, sequence) VALUES ($1, 0) ON CONFLICT (stream) DO NOTHING;

-- name: move_checkpoint
-- Compare-and-set: nothing is updated when another reader moved it or a rebuild took the row away.
UPDATE checkpoint SET sequence = $3, commit_id = $4, stored_at = $5, updated_at = now()
WHERE stream = $1 AND sequence = $2;

-- name: lock_checkpoints
-- Holds the reader of these tables back until the transaction ends.
SELECT stream, sequence FROM checkpoint ORDER BY stream FOR UPDATE;

-- name: retire_checkpoints
-- Its reader finds nothing to move and looks for the live generation.
DELETE FROM checkpoint;
