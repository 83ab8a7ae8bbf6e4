-- Executions in the order they were closed in: those that have been kept for long enough are found without a walk past
-- all others. What it costs is one short entry when an execution is closed: closed_at is set once, and the update that
-- sets it makes entries in other indexes anyway, because the state is in them.
-- no transaction
-- compatible from: 1

CREATE INDEX CONCURRENTLY IF NOT EXISTS holdfast_executions_closed ON holdfast_executions (closed_at)
    WHERE closed_at IS NOT NULL;
