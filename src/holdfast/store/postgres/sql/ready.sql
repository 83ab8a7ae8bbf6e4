-- name: by_id
-- The ready rows of executions whose heads are locked.
SELECT execution_id, since_at, not_before_at, worker, news, avoid_build FROM holdfast_ready
WHERE execution_id = ANY ($1::text[]);

-- name: upsert
-- Ready rows that came or changed.
INSERT INTO holdfast_ready (execution_id, org, queue, priority, kind, version, since_at, not_before_at, worker, news,
    avoid_build)
SELECT execution_id, org, queue, priority, kind, version, since_at, not_before_at, NULLIF(worker, ''), news = 1,
    NULLIF(avoid_build, '')
FROM each($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
    $9::text[], $10::bigint[], $11::text[])
    AS n (execution_id, org, queue, priority, kind, version, since_at, not_before_at, worker, news, avoid_build)
ON CONFLICT (execution_id) DO UPDATE SET queue = excluded.queue, priority = excluded.priority, kind = excluded.kind,
    version = excluded.version, since_at = excluded.since_at, not_before_at = excluded.not_before_at,
    worker = excluded.worker, news = excluded.news, avoid_build = excluded.avoid_build;

-- name: delete
-- Ready rows whose news have been read.
DELETE FROM holdfast_ready WHERE execution_id = ANY ($1::text[]);

-- name: claimable
-- Unleased rows of one queue that a worker with these builds may take, in claiming order, and their heads, locked. Of
-- executions with $9 events or more only those that have waited since $10 or longer. A row is locked with its head, and
-- after it: whoever has got the head then sees whether somebody has just leased the row, and looks on behind it. Where
-- the head is not to be had, the row is not touched.
SELECT r.priority, r.since_at, r.execution_id, r.not_before_at, r.worker, r.news, r.avoid_build, e.id, e.org, e.workflow_id,
    e.kind, e.version, e.queue, e.priority, e.state, e.created_at, e.updated_at, e.closed_at, e.last_seq, e.seen_seq,
    e.call_seq, e.signal_count, e.open_tasks, e.open_timers, e.open_children, e.open_waits, e.epoch, e.nonce, e.crashes,
    e.close_rounds, e.cancel_requested, e.waiting_for, e.stuck, e.metadata, e.parent_id, e.child_no, e.on_parent_close,
    e.successor
FROM holdfast_ready AS r
CROSS JOIN LATERAL (
    SELECT b.build FROM unnest($3::text[], $4::text[], $5::text[]) AS b (kind, version, build)
    WHERE b.kind = r.kind AND b.version = r.version LIMIT 1) AS b
JOIN holdfast_executions AS e ON e.id = r.execution_id
WHERE r.worker IS NULL AND r.org = $1::text AND r.queue = $2::text
    AND (r.not_before_at <= $6::bigint OR (r.avoid_build IS NOT NULL AND r.avoid_build <> b.build))
    AND e.crashes < $8::bigint AND (e.last_seq < $9::bigint OR r.since_at <= $10::bigint)
ORDER BY r.priority DESC, r.since_at, r.execution_id LIMIT $7::bigint
FOR NO KEY UPDATE OF e, r SKIP LOCKED;

-- name: fresh
-- What that has passed by for its many events, of some queues, with nothing locked.
SELECT r.priority, r.since_at, r.execution_id, e.last_seq
FROM holdfast_ready AS r
CROSS JOIN LATERAL (
    SELECT b.build FROM unnest($3::text[], $4::text[], $5::text[]) AS b (kind, version, build)
    WHERE b.kind = r.kind AND b.version = r.version LIMIT 1) AS b
JOIN holdfast_executions AS e ON e.id = r.execution_id
WHERE r.worker IS NULL AND r.org = $1::text AND r.queue = ANY ($2::text[]) AND r.since_at > $10::bigint
    AND (r.not_before_at <= $6::bigint OR (r.avoid_build IS NOT NULL AND r.avoid_build <> b.build))
    AND e.crashes < $8::bigint AND e.last_seq >= $9::bigint
LIMIT $7::bigint;

-- name: from_cursors
-- Rows of some queues and priorities, each from a moment on, that a worker with these builds may take, with nothing
-- locked.
SELECT r.priority, r.since_at, r.execution_id, r.last_seq
FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS lane (queue, priority, since_at)
CROSS JOIN LATERAL (
    SELECT r.priority, r.since_at, r.execution_id, e.last_seq FROM holdfast_ready AS r
    CROSS JOIN LATERAL (
        SELECT b.build FROM unnest($5::text[], $6::text[], $7::text[]) AS b (kind, version, build)
        WHERE b.kind = r.kind AND b.version = r.version LIMIT 1) AS b
    JOIN holdfast_executions AS e ON e.id = r.execution_id
    WHERE r.worker IS NULL AND r.org = $1::text AND r.queue = lane.queue AND r.priority = lane.priority
        AND r.since_at >= lane.since_at
        AND (r.not_before_at <= $8::bigint OR (r.avoid_build IS NOT NULL AND r.avoid_build <> b.build))
        AND e.crashes < $10::bigint
    ORDER BY r.priority DESC, r.since_at, r.execution_id LIMIT $9::bigint) AS r
ORDER BY r.priority DESC, r.since_at, r.execution_id LIMIT $9::bigint;

-- name: oldest_live
-- The first unleased row of each priority of some queues, of kinds and versions that the one who asks knows, whenever it
-- may be taken.
WITH RECURSIVE front (queue, priority, since_at) AS (
    SELECT q.queue, r.priority, r.since_at FROM unnest($2::text[]) AS q (queue)
    CROSS JOIN LATERAL (
        SELECT r.priority, r.since_at FROM holdfast_ready AS r
        WHERE r.worker IS NULL AND r.org = $1::text AND r.queue = q.queue AND EXISTS (
            SELECT FROM unnest($3::text[], $4::text[]) AS b (kind, version)
            WHERE b.kind = r.kind AND b.version = r.version OFFSET 0)
        ORDER BY r.priority DESC, r.since_at, r.execution_id LIMIT 1) AS r
    UNION ALL
    SELECT f.queue, r.priority, r.since_at FROM front AS f
    CROSS JOIN LATERAL (
        SELECT r.priority, r.since_at FROM holdfast_ready AS r
        WHERE r.worker IS NULL AND r.org = $1::text AND r.queue = f.queue AND r.priority < f.priority AND EXISTS (
            SELECT FROM unnest($3::text[], $4::text[]) AS b (kind, version)
            WHERE b.kind = r.kind AND b.version = r.version OFFSET 0)
        ORDER BY r.priority DESC, r.since_at, r.execution_id LIMIT 1) AS r)
SELECT queue, priority, since_at FROM front;

-- name: suspects
-- Those that have brought workers down, of several queues. They are few, and found among all that wait by an index of
-- their own.
WITH s AS MATERIALIZED (
    SELECT id FROM holdfast_executions WHERE org = $1::text AND crashes > 0 AND crashes >= $8::bigint
        AND closed_at IS NULL)
SELECT r.priority, r.since_at, r.execution_id, r.not_before_at, r.worker, r.news, r.avoid_build, e.id, e.org, e.workflow_id,
    e.kind, e.version, e.queue, e.priority, e.state, e.created_at, e.updated_at, e.closed_at, e.last_seq, e.seen_seq,
    e.call_seq, e.signal_count, e.open_tasks, e.open_timers, e.open_children, e.open_waits, e.epoch, e.nonce, e.crashes,
    e.close_rounds, e.cancel_requested, e.waiting_for, e.stuck, e.metadata, e.parent_id, e.child_no, e.on_parent_close,
    e.successor
FROM s JOIN holdfast_ready AS r ON r.execution_id = s.id
CROSS JOIN LATERAL (
    SELECT b.build FROM unnest($3::text[], $4::text[], $5::text[]) AS b (kind, version, build)
    WHERE b.kind = r.kind AND b.version = r.version LIMIT 1) AS b
JOIN holdfast_executions AS e ON e.id = r.execution_id
WHERE r.worker IS NULL AND r.org = $1::text AND r.queue = ANY ($2::text[])
    AND (r.not_before_at <= $6::bigint OR (r.avoid_build IS NOT NULL AND r.avoid_build <> b.build))
    AND e.crashes >= $8::bigint
ORDER BY r.priority DESC, r.since_at, r.execution_id LIMIT $7::bigint
FOR NO KEY UPDATE OF e, r SKIP LOCKED;

-- name: claimable_queues
-- How many of the first claimable rows of several queues are in each, if no queue has more than $11 of them.
SELECT f.queue, count(*) FROM (
    SELECT q.queue, r.priority, r.since_at, r.execution_id
    FROM unnest($2::text[]) AS q (queue)
    CROSS JOIN LATERAL (
        SELECT r.priority, r.since_at, r.execution_id FROM holdfast_ready AS r
        CROSS JOIN LATERAL (
            SELECT b.build FROM unnest($3::text[], $4::text[], $5::text[]) AS b (kind, version, build)
            WHERE b.kind = r.kind AND b.version = r.version LIMIT 1) AS b
        JOIN holdfast_executions AS e ON e.id = r.execution_id
        WHERE r.worker IS NULL AND r.org = $1::text AND r.queue = q.queue
            AND (r.not_before_at <= $6::bigint OR (r.avoid_build IS NOT NULL AND r.avoid_build <> b.build))
            AND e.crashes < $8::bigint AND (e.last_seq < $9::bigint OR r.since_at <= $10::bigint)
        ORDER BY r.priority DESC, r.since_at, r.execution_id LIMIT $11::bigint) AS r
    ORDER BY r.priority DESC, r.since_at, r.execution_id LIMIT $7::bigint) AS f
GROUP BY f.queue;

-- name: held
-- Executions leased by these workers.
SELECT execution_id FROM holdfast_ready WHERE worker = ANY ($1::text[]) ORDER BY execution_id;

-- name: next_due
-- The earliest moments at which something is due by itself: a timer, a deadline of a task, anything else. No timer or
-- deadline is older than $2. A delay that was over does not count: such a row waits for a worker, not for the clock. A
-- delivery on its way is due at once. And how long it has taken to find that out, in microseconds.
SELECT (SELECT min(fire_at) FROM holdfast_timers WHERE fire_at >= $2::bigint),
    (SELECT min(due_at) FROM holdfast_tasks WHERE due_at IS NOT NULL AND due_at >= $2::bigint),
    least((SELECT min(sent_at) FROM holdfast_deliveries WHERE done_at IS NULL),
    (SELECT min(not_before_at) FROM holdfast_tasks
        WHERE worker IS NULL AND NOT deferred AND not_before_at > 0 AND not_before_at > $1::bigint),
    (SELECT min(not_before_at) FROM holdfast_ready
        WHERE worker IS NULL AND not_before_at > 0 AND not_before_at > $1::bigint)),
    (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::bigint;

-- name: news
-- Executions leased by a worker that got events it has not been told of.
SELECT r.execution_id, e.last_seq
FROM holdfast_ready AS r
CROSS JOIN LATERAL (SELECT e.last_seq FROM holdfast_executions AS e WHERE e.id = r.execution_id OFFSET 0) AS e
WHERE r.worker = $1::text AND r.news ORDER BY r.execution_id;

-- name: backlog
-- How many executions of each queue wait for a worker now, and since when; the fullest queues first.
SELECT org, queue, count(*), min(greatest(since_at, not_before_at)) FROM holdfast_ready
WHERE worker IS NULL AND not_before_at <= $1::bigint GROUP BY org, queue ORDER BY 3 DESC, 1, 2 LIMIT $2::bigint;
