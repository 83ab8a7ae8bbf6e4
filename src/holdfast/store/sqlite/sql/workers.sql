-- name: upsert
-- Worker sessions that came or renewed their lease.
INSERT INTO holdfast_workers (id, org, host, pid, started_at, lease_until_at) VALUES /*row*/(?, ?, ?, ?, ?, ?)/*end*/
ON CONFLICT (id) DO UPDATE SET lease_until_at = excluded.lease_until_at;

-- name: delete
-- Worker sessions that ended.
DELETE FROM holdfast_workers WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: by_id
-- Worker sessions by id.
SELECT id, org, host, pid, started_at, lease_until_at FROM holdfast_workers WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: orphaned
-- Sessions that hold something although they are gone: their row was deleted while they still claimed.
SELECT DISTINCT worker FROM holdfast_ready WHERE worker IS NOT NULL AND worker NOT IN (SELECT id FROM holdfast_workers)
UNION
SELECT DISTINCT worker FROM holdfast_tasks WHERE worker IS NOT NULL AND worker NOT IN (SELECT id FROM holdfast_workers);

-- name: expired
-- Worker sessions whose lease has run out.
SELECT id, org, host, pid, started_at, lease_until_at FROM holdfast_workers WHERE lease_until_at <= ? ORDER BY id;

-- name: of_org
-- The worker sessions of an org, the youngest first.
SELECT id, org, host, pid, started_at, lease_until_at FROM holdfast_workers WHERE org = ?
ORDER BY started_at DESC, id LIMIT ?;
