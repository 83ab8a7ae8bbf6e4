-- name: expired
-- Worker sessions whose lease has run out, and that nobody else is about to end.
SELECT id, org, host, pid, started_at, lease_until_at FROM holdfast_workers WHERE lease_until_at <= $1::bigint
ORDER BY id FOR NO KEY UPDATE SKIP LOCKED;

-- name: orphaned
-- Sessions that hold something although they are gone: their row was deleted while they still claimed. One step through
-- an index for each session that holds anything.
WITH RECURSIVE turns (worker) AS (
    SELECT min(worker) FROM holdfast_ready WHERE worker IS NOT NULL
    UNION ALL
    SELECT (SELECT min(r.worker) FROM holdfast_ready AS r WHERE r.worker IS NOT NULL AND r.worker > turns.worker)
    FROM turns WHERE turns.worker IS NOT NULL),
tasks (worker) AS (
    SELECT min(worker) FROM holdfast_tasks WHERE worker IS NOT NULL
    UNION ALL
    SELECT (SELECT min(t.worker) FROM holdfast_tasks AS t WHERE t.worker IS NOT NULL AND t.worker > tasks.worker)
    FROM tasks WHERE tasks.worker IS NOT NULL)
SELECT h.worker FROM (SELECT worker FROM turns UNION SELECT worker FROM tasks) AS h
WHERE h.worker IS NOT NULL AND NOT EXISTS (SELECT 1 FROM holdfast_workers AS w WHERE w.id = h.worker)
ORDER BY h.worker;

-- name: renew
-- Keep a session that is alive, by the server's clock.
UPDATE holdfast_workers AS w SET lease_until_at = greatest(w.lease_until_at, now.at + $2::bigint)
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS at) AS now
WHERE w.id = $1::text AND w.lease_until_at > now.at RETURNING true;
