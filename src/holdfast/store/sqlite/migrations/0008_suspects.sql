-- Executions that have brought workers down and may do so again.
CREATE INDEX holdfast_executions_suspect ON holdfast_executions (org, id) WHERE crashes > 0 AND closed_at IS NULL;
