-- name: upsert
-- Ready rows that came or changed.
INSERT INTO holdfast_ready (execution_id, org, queue, priority, kind, version, since_at, not_before_at, worker, news, avoid_build)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?, NULLIF(?, ''))/*end*/
ON CONFLICT (execution_id) DO UPDATE SET queue = excluded.queue, priority = excluded.priority, kind = excluded.kind,
    version = excluded.version, since_at = excluded.since_at, not_before_at = excluded.not_before_at,
    worker = excluded.worker, news = excluded.news, avoid_build = excluded.avoid_build;

-- name: delete
-- Ready rows whose news have been read.
DELETE FROM holdfast_ready WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: claimable
-- Unleased rows of one queue that a worker with these builds may take, in claiming order: those of executions with few
-- events and those that have waited for a moment (1), or the others (0).
WITH builds (kind, version, build) AS (VALUES /*row*/(?, ?, ?)/*end*/)
SELECT r.priority, r.since_at, r.execution_id
FROM holdfast_ready AS r CROSS JOIN builds AS b ON b.kind = r.kind AND b.version = r.version
CROSS JOIN holdfast_executions AS e ON e.id = r.execution_id
WHERE r.worker IS NULL AND r.org = ? AND r.queue = ?
    AND (r.not_before_at <= ? OR (r.avoid_build IS NOT NULL AND r.avoid_build <> b.build))
    AND e.crashes < ? AND (e.last_seq < ? OR r.since_at <= ?) = ?
ORDER BY r.priority DESC, r.since_at, r.execution_id LIMIT ?;

-- name: from_cursor
-- The same of one priority, from a moment on.
WITH builds (kind, version, build) AS (VALUES /*row*/(?, ?, ?)/*end*/)
SELECT r.priority, r.since_at, r.execution_id
FROM holdfast_ready AS r CROSS JOIN builds AS b ON b.kind = r.kind AND b.version = r.version
CROSS JOIN holdfast_executions AS e ON e.id = r.execution_id
WHERE r.worker IS NULL AND r.org = ? AND r.queue = ? AND r.priority = ? AND r.since_at >= ?
    AND (r.not_before_at <= ? OR (r.avoid_build IS NOT NULL AND r.avoid_build <> b.build))
    AND e.crashes < ? AND (e.last_seq < ? OR r.since_at <= ?) = ?
ORDER BY r.priority DESC, r.since_at, r.execution_id LIMIT ?;

-- name: oldest_live
-- The first unleased row of a queue with a lower priority than that, of these kinds and versions, whenever it may be taken.
WITH wanted (kind, version) AS (VALUES /*row*/(?, ?)/*end*/)
SELECT r.priority, r.since_at FROM holdfast_ready AS r
CROSS JOIN wanted ON wanted.kind = r.kind AND wanted.version = r.version
WHERE r.worker IS NULL AND r.org = ? AND r.queue = ? AND r.priority < ?
ORDER BY r.priority DESC, r.since_at LIMIT 1;

-- name: suspects
-- The same for those that have brought workers down. They are few, and found among all that wait by an index of their own.
WITH builds (kind, version, build) AS (VALUES /*row*/(?, ?, ?)/*end*/)
SELECT r.priority, r.since_at, r.execution_id
FROM holdfast_executions AS e INDEXED BY holdfast_executions_suspect
CROSS JOIN holdfast_ready AS r ON r.execution_id = e.id
CROSS JOIN builds AS b ON b.kind = r.kind AND b.version = r.version
WHERE e.crashes > 0 AND e.closed_at IS NULL AND e.org = ? AND r.worker IS NULL AND r.queue = ?
    AND (r.not_before_at <= ? OR (r.avoid_build IS NOT NULL AND r.avoid_build <> b.build))
    AND e.crashes >= ?
ORDER BY r.priority DESC, r.since_at, r.execution_id LIMIT ?;

-- name: held
-- Executions leased by these workers.
SELECT execution_id FROM holdfast_ready WHERE worker IN (VALUES /*row*/(?)/*end*/) ORDER BY execution_id;

-- name: next_delayed
-- When the next delayed row becomes claimable.
SELECT min(not_before_at) FROM holdfast_ready WHERE worker IS NULL AND not_before_at > 0 AND not_before_at > ?;

-- name: news
-- Executions leased by a worker that got events it has not been told of.
SELECT r.execution_id, e.last_seq
FROM holdfast_ready AS r CROSS JOIN holdfast_executions AS e ON e.id = r.execution_id
WHERE r.worker = ? AND r.news = 1 ORDER BY r.execution_id;

-- name: backlog
-- How many executions of each queue wait for a worker now, and since when; the fullest queues first.
SELECT org, queue, count(*), min(max(since_at, not_before_at)) FROM holdfast_ready
WHERE worker IS NULL AND not_before_at <= ? GROUP BY org, queue ORDER BY 3 DESC, 1, 2 LIMIT ?;
