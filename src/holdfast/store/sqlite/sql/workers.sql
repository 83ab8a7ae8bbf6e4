-- name: orphaned
-- Sessions that hold something although they are gone: their row was deleted while they still claimed.
SELECT DISTINCT worker FROM holdfast_ready WHERE worker IS NOT NULL AND worker NOT IN (SELECT id FROM holdfast_workers)
UNION
SELECT DISTINCT worker FROM holdfast_tasks WHERE worker IS NOT NULL AND worker NOT IN (SELECT id FROM holdfast_workers);

-- name: expired
-- Worker sessions whose lease has run out.
SELECT id, org, host, pid, started_at, lease_until_at FROM holdfast_workers WHERE lease_until_at <= ? ORDER BY id;
