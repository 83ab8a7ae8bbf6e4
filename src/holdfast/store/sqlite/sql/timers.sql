-- name: insert
-- New timers; a number that is taken is an error.
INSERT INTO holdfast_timers (execution_id, timer_no, org, fire_at, promise)
VALUES /*row*/(?, ?, ?, ?, NULLIF(?, ''))/*end*/;

-- name: delete
-- Timers that fired or were cancelled.
DELETE FROM holdfast_timers WHERE /*row*/(execution_id = ? AND timer_no = ?)/*or*/;

-- name: purge
-- All timers of executions that are over.
DELETE FROM holdfast_timers WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: by_key
-- Timers by execution and number.
SELECT execution_id, timer_no, org, fire_at, promise
FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_timers ON execution_id = wanted.column1 AND timer_no = wanted.column2;

-- name: due
-- Timers to fire, the earliest first.
SELECT execution_id, timer_no, org, fire_at, promise FROM holdfast_timers WHERE fire_at <= ?
ORDER BY fire_at, execution_id, timer_no LIMIT ?;

-- name: of_execution
-- The running timers of one execution.
SELECT execution_id, timer_no, org, fire_at, promise FROM holdfast_timers WHERE execution_id = ? AND org = ? ORDER BY timer_no;

-- name: next_due
-- When the next timer fires.
SELECT min(fire_at) FROM holdfast_timers;
