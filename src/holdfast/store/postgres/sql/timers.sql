-- name: insert
-- New timers; a number that is taken is an error.
INSERT INTO holdfast_timers (execution_id, timer_no, org, fire_at, promise)
SELECT execution_id, timer_no, org, fire_at, NULLIF(promise, '')
FROM each($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[])
    AS n (execution_id, timer_no, org, fire_at, promise);

-- name: delete
-- Timers that fired or were cancelled.
DELETE FROM holdfast_timers AS t USING unnest($1::text[], $2::bigint[]) AS n (execution_id, timer_no)
WHERE t.execution_id = n.execution_id AND t.timer_no = n.timer_no;

-- name: purge
-- All timers of executions that are over.
DELETE FROM holdfast_timers WHERE execution_id = ANY ($1::text[]);

-- name: by_key
-- Timers by execution and number.
SELECT t.execution_id, t.timer_no, t.org, t.fire_at, t.promise
FROM unnest($1::text[], $2::bigint[]) AS wanted (execution_id, timer_no)
JOIN holdfast_timers AS t ON t.execution_id = wanted.execution_id AND t.timer_no = wanted.timer_no;

-- name: due
-- Timers to fire, the earliest first, with their heads locked. None is older than $3.
SELECT t.execution_id, t.timer_no FROM holdfast_timers AS t JOIN holdfast_executions AS e ON e.id = t.execution_id
WHERE t.fire_at <= $1::bigint AND t.fire_at >= $3::bigint
ORDER BY t.fire_at, t.execution_id, t.timer_no LIMIT $2::bigint FOR NO KEY UPDATE OF e SKIP LOCKED;

-- name: anything_due
-- What there is to do for a pass over what time has brought: one question instead of six. No timer, and no deadline of
-- a task, is older than $2. Last: whether anybody holds anything, without which nobody is orphaned.
SELECT EXISTS (SELECT 1 FROM holdfast_timers WHERE fire_at <= $1::bigint AND fire_at >= $2::bigint),
    EXISTS (SELECT 1 FROM holdfast_tasks
        WHERE due_at IS NOT NULL AND due_at <= $1::bigint AND due_at >= $2::bigint),
    EXISTS (SELECT 1 FROM holdfast_executions WHERE open_children > 0 AND closed_at IS NOT NULL),
    EXISTS (SELECT 1 FROM holdfast_deliveries WHERE done_at IS NULL),
    EXISTS (SELECT 1 FROM holdfast_workers WHERE lease_until_at <= $1::bigint),
    EXISTS (SELECT 1 FROM holdfast_ready WHERE worker IS NOT NULL)
        OR EXISTS (SELECT 1 FROM holdfast_tasks WHERE worker IS NOT NULL);

-- name: of_execution
-- The running timers of one execution.
SELECT execution_id, timer_no, org, fire_at, promise FROM holdfast_timers
WHERE execution_id = $2::text AND org = $1::text ORDER BY timer_no;
