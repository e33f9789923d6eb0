-- name: live_generation
-- The generation that the views show.
SELECT number, schema, handlers FROM {front}.generation WHERE state = 'live';

-- name: generations_in
-- All generations in a state.
SELECT number, schema, handlers FROM {front}.generation WHERE state = $1 ORDER BY number;

-- name: add_generation
-- A new generation; its schema is named after its number.
WITH next AS (SELECT nextval('{front}.generation_number')::int AS number)
INSERT INTO {front}.generation (number, schema, state, handlers)
SELECT number, $1 || '_g' || number, $2, $3 FROM next
RETURNING number, schema, handlers;

-- name: retire_live
-- The live generation steps back.
UPDATE {front}.generation SET state = 'old' WHERE state = 'live';

-- name: set_live
-- A built generation steps in front.
UPDATE {front}.generation SET state = 'live', live_at = now() WHERE number = $1;

-- name: forget_generation
-- Its schema is gone.
DELETE FROM {front}.generation WHERE number = $1;
