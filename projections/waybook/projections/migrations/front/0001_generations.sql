-- The front: what stays while read models are rebuilt and swapped. Runs in the schema that users query.

CREATE SEQUENCE generation_number;

-- A generation is one whole set of read models with its own checkpoint, in a schema of its own.
-- `handlers` is the version of the code that filled it; the views in front show the live one.
CREATE TABLE generation (
    number     integer PRIMARY KEY,
    schema     text NOT NULL UNIQUE,
    state      text NOT NULL CHECK (state IN ('building', 'live', 'old')),
    handlers   integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    live_at    timestamptz
);

CREATE UNIQUE INDEX generation_live ON generation (state) WHERE state = 'live';
