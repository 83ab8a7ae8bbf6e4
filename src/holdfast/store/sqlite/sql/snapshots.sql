-- name: upsert
-- The newest snapshot of each program, in the place of the one before.
INSERT INTO holdfast_snapshots (execution_id, up_to, version, build, state) VALUES /*row*/(?, ?, ?, ?, ?)/*end*/
ON CONFLICT (execution_id) DO UPDATE SET up_to = excluded.up_to, version = excluded.version, build = excluded.build,
    state = excluded.state;

-- name: delete
-- Those of these executions.
DELETE FROM holdfast_snapshots WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: one
-- That of one execution.
SELECT s.execution_id, s.up_to, s.version, s.build, s.state FROM holdfast_snapshots AS s
WHERE s.execution_id = ? AND EXISTS (SELECT 1 FROM holdfast_executions AS e WHERE e.id = s.execution_id AND e.org = ?);
