-- Executions in the order they were closed in: those that have been kept for long enough are found without a walk past
-- all others.
CREATE INDEX holdfast_executions_closed ON holdfast_executions (closed_at) WHERE closed_at IS NOT NULL;

-- Executions that are gone, but for events up to a number: these are removed page by page.
CREATE TABLE holdfast_remains (
    execution_id TEXT    NOT NULL PRIMARY KEY,
    org          TEXT    NOT NULL,
    last_seq     INTEGER NOT NULL,
    CHECK (last_seq >= 1)
) STRICT, WITHOUT ROWID;
