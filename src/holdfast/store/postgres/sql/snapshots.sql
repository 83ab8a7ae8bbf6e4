-- name: upsert
-- The newest snapshot of each program, in the place of the one before.
INSERT INTO holdfast_snapshots (execution_id, up_to, version, build, state)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bytea[])
ON CONFLICT (execution_id) DO UPDATE SET up_to = excluded.up_to, version = excluded.version, build = excluded.build,
    state = excluded.state;

-- name: delete
-- Those of these executions.
DELETE FROM holdfast_snapshots WHERE execution_id = ANY ($1::text[]);

-- name: one
-- That of one execution.
SELECT s.execution_id, s.up_to, s.version, s.build, s.state FROM holdfast_snapshots AS s
WHERE s.execution_id = $2::text
    AND EXISTS (SELECT 1 FROM holdfast_executions AS e WHERE e.id = $2::text AND e.org = $1::text);
