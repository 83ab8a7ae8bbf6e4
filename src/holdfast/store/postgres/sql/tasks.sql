-- name: insert
-- New tasks; a number that is taken is an error.
INSERT INTO holdfast_tasks (execution_id, task_no, org, kind, queue, priority, input, retry, timeouts, scheduled_at,
    not_before_at, attempt, nonce, worker, started_at, heartbeat_at, due_at, details, progress, last_failure, deferred,
    output_seq)
SELECT execution_id, task_no, org, kind, queue, priority, input, retry, timeouts, scheduled_at, not_before_at, attempt,
    nonce, NULLIF(worker, ''), started_at, heartbeat_at, due_at, NULLIF(details, ''), progress,
    NULLIF(last_failure, ''), deferred = 1, output_seq
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[],
    $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::text[], $15::bigint[], $16::bigint[],
    $17::bigint[], $18::text[], $19::float8[], $20::text[], $21::bigint[], $22::bigint[])
    AS n (execution_id, task_no, org, kind, queue, priority, input, retry, timeouts, scheduled_at, not_before_at,
        attempt, nonce, worker, started_at, heartbeat_at, due_at, details, progress, last_failure, deferred,
        output_seq);

-- name: update
-- Tasks that changed; what was asked for (kind, input, retry, time-outs) never does.
UPDATE holdfast_tasks AS t SET queue = n.queue, priority = n.priority, not_before_at = n.not_before_at,
    attempt = n.attempt, nonce = n.nonce, worker = NULLIF(n.worker, ''), started_at = n.started_at,
    heartbeat_at = n.heartbeat_at, due_at = n.due_at, details = NULLIF(n.details, ''), progress = n.progress,
    last_failure = NULLIF(n.last_failure, ''), deferred = n.deferred = 1, output_seq = n.output_seq
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[],
    $9::bigint[], $10::bigint[], $11::bigint[], $12::text[], $13::float8[], $14::text[], $15::bigint[],
    $16::bigint[])
    AS n (execution_id, task_no, queue, priority, not_before_at, attempt, nonce, worker, started_at, heartbeat_at,
        due_at, details, progress, last_failure, deferred, output_seq)
WHERE t.execution_id = n.execution_id AND t.task_no = n.task_no;

-- name: delete
-- Tasks that are finished.
DELETE FROM holdfast_tasks AS t USING unnest($1::text[], $2::bigint[]) AS n (execution_id, task_no)
WHERE t.execution_id = n.execution_id AND t.task_no = n.task_no;

-- name: purge
-- All tasks of executions that are over.
DELETE FROM holdfast_tasks WHERE execution_id = ANY ($1::text[]);

-- name: by_key
-- Tasks by execution and number.
SELECT t.execution_id, t.task_no, t.org, t.kind, t.queue, t.priority, t.input, t.retry, t.timeouts, t.scheduled_at,
    t.not_before_at, t.attempt, t.nonce, t.worker, t.started_at, t.heartbeat_at, t.due_at, t.details, t.progress,
    t.last_failure, t.deferred, t.output_seq
FROM unnest($1::text[], $2::bigint[]) AS wanted (execution_id, task_no)
JOIN holdfast_tasks AS t ON t.execution_id = wanted.execution_id AND t.task_no = wanted.task_no;

-- name: claimable
-- Tasks of one queue that a worker knowing these kinds may take, in claiming order, locked after their heads (see
-- ready.sql).
SELECT t.priority, greatest(t.not_before_at, t.scheduled_at), t.execution_id, t.task_no
FROM holdfast_tasks AS t JOIN holdfast_executions AS e ON e.id = t.execution_id
WHERE t.worker IS NULL AND NOT t.deferred AND t.org = $1::text AND t.queue = $2::text AND t.not_before_at <= $4::bigint
    AND t.kind = ANY ($3::text[])
ORDER BY t.priority DESC, greatest(t.not_before_at, t.scheduled_at), t.execution_id, t.task_no LIMIT $5::bigint
FOR NO KEY UPDATE OF e, t SKIP LOCKED;

-- name: from_cursors
-- The same of some queues and priorities, each from a moment on, with nothing locked.
SELECT t.priority, t.since_at, t.execution_id, t.task_no
FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS lane (queue, priority, since_at)
CROSS JOIN LATERAL (
    SELECT t.priority, greatest(t.not_before_at, t.scheduled_at) AS since_at, t.execution_id, t.task_no
    FROM holdfast_tasks AS t
    WHERE t.worker IS NULL AND NOT t.deferred AND t.org = $1::text AND t.queue = lane.queue
        AND t.priority = lane.priority AND greatest(t.not_before_at, t.scheduled_at) >= lane.since_at
        AND t.not_before_at <= $6::bigint AND t.kind = ANY ($5::text[])
    ORDER BY t.priority DESC, greatest(t.not_before_at, t.scheduled_at), t.execution_id, t.task_no
    LIMIT $7::bigint) AS t
ORDER BY t.priority DESC, t.since_at, t.execution_id, t.task_no LIMIT $7::bigint;

-- name: oldest_live
-- The first task that nobody has of each priority of some queues, of kinds that the one who asks knows, whenever it may be
-- taken.
WITH RECURSIVE front (queue, priority, since_at) AS (
    SELECT q.queue, t.priority, t.since_at FROM unnest($2::text[]) AS q (queue)
    CROSS JOIN LATERAL (
        SELECT t.priority, greatest(t.not_before_at, t.scheduled_at) AS since_at FROM holdfast_tasks AS t
        WHERE t.worker IS NULL AND NOT t.deferred AND t.org = $1::text AND t.queue = q.queue AND t.kind = ANY ($3::text[])
        ORDER BY t.priority DESC, greatest(t.not_before_at, t.scheduled_at), t.execution_id, t.task_no LIMIT 1) AS t
    UNION ALL
    SELECT f.queue, t.priority, t.since_at FROM front AS f
    CROSS JOIN LATERAL (
        SELECT t.priority, greatest(t.not_before_at, t.scheduled_at) AS since_at FROM holdfast_tasks AS t
        WHERE t.worker IS NULL AND NOT t.deferred AND t.org = $1::text AND t.queue = f.queue AND t.priority < f.priority
            AND t.kind = ANY ($3::text[])
        ORDER BY t.priority DESC, greatest(t.not_before_at, t.scheduled_at), t.execution_id, t.task_no LIMIT 1) AS t)
SELECT queue, priority, since_at FROM front;

-- name: claimable_queues
-- How many of the first claimable tasks of several queues are in each, if no queue has more than $6 of them.
SELECT f.queue, count(*) FROM (
    SELECT q.queue
    FROM unnest($2::text[]) AS q (queue)
    CROSS JOIN LATERAL (
        SELECT t.priority, greatest(t.not_before_at, t.scheduled_at) AS since_at, t.execution_id, t.task_no
        FROM holdfast_tasks AS t
        WHERE t.worker IS NULL AND NOT t.deferred AND t.org = $1::text AND t.queue = q.queue
            AND t.not_before_at <= $4::bigint AND t.kind = ANY ($3::text[])
        ORDER BY t.priority DESC, greatest(t.not_before_at, t.scheduled_at), t.execution_id, t.task_no
        LIMIT $6::bigint) AS t
    ORDER BY t.priority DESC, t.since_at, t.execution_id, t.task_no LIMIT $5::bigint) AS f
GROUP BY f.queue;

-- name: due
-- Tasks whose nearest deadline has passed, the oldest first, with their heads locked. None is older than $3.
SELECT t.execution_id, t.task_no FROM holdfast_tasks AS t JOIN holdfast_executions AS e ON e.id = t.execution_id
WHERE t.due_at IS NOT NULL AND t.due_at <= $1::bigint AND t.due_at >= $3::bigint
ORDER BY t.due_at LIMIT $2::bigint FOR NO KEY UPDATE OF e SKIP LOCKED;

-- name: held
-- Tasks leased by these workers.
SELECT execution_id, task_no FROM holdfast_tasks WHERE worker = ANY ($1::text[]) ORDER BY execution_id, task_no;

-- name: of_execution
-- The unfinished tasks of one execution.
SELECT execution_id, task_no, org, kind, queue, priority, input, retry, timeouts, scheduled_at, not_before_at, attempt,
    nonce, worker, started_at, heartbeat_at, due_at, details, progress, last_failure, deferred,
    output_seq
FROM holdfast_tasks WHERE execution_id = $2::text AND org = $1::text ORDER BY task_no;

-- name: of_each
-- The unfinished tasks of several executions.
SELECT execution_id, task_no, org, kind, queue, priority, input, retry, timeouts, scheduled_at, not_before_at, attempt,
    nonce, worker, started_at, heartbeat_at, due_at, details, progress, last_failure, deferred, output_seq
FROM holdfast_tasks WHERE execution_id = ANY ($2::text[]) AND org = $1::text ORDER BY execution_id, task_no;

-- name: one
-- One unfinished task.
SELECT execution_id, task_no, org, kind, queue, priority, input, retry, timeouts, scheduled_at, not_before_at, attempt,
    nonce, worker, started_at, heartbeat_at, due_at, details, progress, last_failure, deferred, output_seq
FROM holdfast_tasks WHERE execution_id = $2::text AND task_no = $3::bigint AND org = $1::text;

-- name: backlog
-- How many tasks of each queue wait for a worker now, and since when; the fullest queues first.
SELECT org, queue, count(*), min(greatest(not_before_at, scheduled_at)) FROM holdfast_tasks
WHERE worker IS NULL AND NOT deferred AND not_before_at <= $1::bigint
GROUP BY org, queue ORDER BY 3 DESC, 1, 2 LIMIT $2::bigint;
