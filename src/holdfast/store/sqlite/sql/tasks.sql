-- name: insert
-- New tasks; a number that is taken is an error.
INSERT INTO holdfast_tasks (execution_id, task_no, org, kind, queue, priority, input, retry, timeouts, scheduled_at,
    not_before_at, attempt, nonce, worker, started_at, heartbeat_at, due_at, details, progress, last_failure, deferred,
    output_seq)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?, ?, ?, NULLIF(?, ''), ?, NULLIF(?, ''), ?, ?)/*end*/;

-- name: update
-- Tasks that changed; what was asked for (kind, input, retry, time-outs) never does.
INSERT INTO holdfast_tasks (execution_id, task_no, org, kind, queue, priority, input, retry, timeouts, scheduled_at,
    not_before_at, attempt, nonce, worker, started_at, heartbeat_at, due_at, details, progress, last_failure, deferred,
    output_seq)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?, ?, ?, NULLIF(?, ''), ?, NULLIF(?, ''), ?, ?)/*end*/
ON CONFLICT (execution_id, task_no) DO UPDATE SET queue = excluded.queue, priority = excluded.priority,
    not_before_at = excluded.not_before_at, attempt = excluded.attempt, nonce = excluded.nonce,
    worker = excluded.worker, started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at,
    due_at = excluded.due_at, details = excluded.details, progress = excluded.progress,
    last_failure = excluded.last_failure, deferred = excluded.deferred, output_seq = excluded.output_seq;

-- name: delete
-- Tasks that are finished.
DELETE FROM holdfast_tasks WHERE /*row*/(execution_id = ? AND task_no = ?)/*or*/;

-- name: purge
-- All tasks of executions that are over.
DELETE FROM holdfast_tasks WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: by_key
-- Tasks by execution and number.
SELECT execution_id, task_no, org, kind, queue, priority, CAST(input AS BLOB), CAST(retry AS BLOB),
    CAST(timeouts AS BLOB), scheduled_at, not_before_at, attempt, nonce, worker, started_at, heartbeat_at, due_at,
    CAST(details AS BLOB), progress, CAST(last_failure AS BLOB), deferred, output_seq
FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_tasks ON execution_id = wanted.column1 AND task_no = wanted.column2;

-- name: one
-- One unfinished task.
SELECT execution_id, task_no, org, kind, queue, priority, CAST(input AS BLOB), CAST(retry AS BLOB),
    CAST(timeouts AS BLOB), scheduled_at, not_before_at, attempt, nonce, worker, started_at, heartbeat_at, due_at,
    CAST(details AS BLOB), progress, CAST(last_failure AS BLOB), deferred, output_seq
FROM holdfast_tasks WHERE execution_id = ? AND task_no = ? AND org = ?;

-- name: of_execution
-- The unfinished tasks of one execution.
SELECT execution_id, task_no, org, kind, queue, priority, CAST(input AS BLOB), CAST(retry AS BLOB),
    CAST(timeouts AS BLOB), scheduled_at, not_before_at, attempt, nonce, worker, started_at, heartbeat_at, due_at,
    CAST(details AS BLOB), progress, CAST(last_failure AS BLOB), deferred, output_seq
FROM holdfast_tasks WHERE execution_id = ? AND org = ? ORDER BY task_no;

-- name: of_each
-- The unfinished tasks of several executions.
SELECT t.execution_id, t.task_no, t.org, t.kind, t.queue, t.priority, CAST(t.input AS BLOB), CAST(t.retry AS BLOB),
    CAST(t.timeouts AS BLOB), t.scheduled_at, t.not_before_at, t.attempt, t.nonce, t.worker, t.started_at, t.heartbeat_at,
    t.due_at, CAST(t.details AS BLOB), t.progress, CAST(t.last_failure AS BLOB), t.deferred, t.output_seq
FROM json_each(?) AS wanted CROSS JOIN holdfast_tasks AS t ON t.execution_id = wanted.value AND t.org = ?
ORDER BY t.execution_id, t.task_no;

-- name: claimable
-- Tasks of one queue that a worker knowing these kinds may take, in claiming order.
WITH wanted (kind) AS (VALUES /*row*/(?)/*end*/)
SELECT priority, max(not_before_at, scheduled_at), execution_id, task_no FROM holdfast_tasks
WHERE worker IS NULL AND deferred = 0 AND org = ? AND queue = ?
    AND not_before_at <= ? AND kind IN (SELECT kind FROM wanted)
ORDER BY priority DESC, max(not_before_at, scheduled_at), execution_id, task_no LIMIT ?;

-- name: from_cursor
-- The same of one priority, from a moment on.
WITH wanted (kind) AS (VALUES /*row*/(?)/*end*/)
SELECT priority, max(not_before_at, scheduled_at), execution_id, task_no FROM holdfast_tasks
WHERE worker IS NULL AND deferred = 0 AND org = ? AND queue = ? AND priority = ? AND max(not_before_at, scheduled_at) >= ?
    AND not_before_at <= ? AND kind IN (SELECT kind FROM wanted)
ORDER BY priority DESC, max(not_before_at, scheduled_at), execution_id, task_no LIMIT ?;

-- name: oldest_live
-- The first task of a queue that nobody has, with a lower priority than that, of these kinds, whenever it may be taken.
WITH wanted (kind) AS (VALUES /*row*/(?)/*end*/)
SELECT priority, max(not_before_at, scheduled_at) FROM holdfast_tasks
WHERE worker IS NULL AND deferred = 0 AND org = ? AND queue = ? AND priority < ? AND kind IN (SELECT kind FROM wanted)
ORDER BY priority DESC, max(not_before_at, scheduled_at) LIMIT 1;

-- name: due
-- Tasks whose nearest deadline has passed, the oldest first.
SELECT execution_id, task_no FROM holdfast_tasks WHERE due_at IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT ?;

-- name: held
-- Tasks leased by these workers.
SELECT execution_id, task_no FROM holdfast_tasks WHERE worker IN (VALUES /*row*/(?)/*end*/) ORDER BY execution_id, task_no;

-- name: next_due
-- The nearest deadline.
SELECT min(due_at) FROM holdfast_tasks WHERE due_at IS NOT NULL;

-- name: next_delayed
-- When the next delayed task becomes claimable.
SELECT min(not_before_at) FROM holdfast_tasks
WHERE worker IS NULL AND deferred = 0 AND not_before_at > 0 AND not_before_at > ?;

-- name: backlog
-- How many tasks of each queue wait for a worker now, and since when; the fullest queues first.
SELECT org, queue, count(*), min(max(not_before_at, scheduled_at)) FROM holdfast_tasks
WHERE worker IS NULL AND deferred = 0 AND not_before_at <= ? GROUP BY org, queue ORDER BY 3 DESC, 1, 2 LIMIT ?;
