-- name: upsert
-- Promises that came or were settled.
INSERT INTO holdfast_promises (execution_id, name, org, promise_no, state, created_at, value, failure, settled_at,
    settled_by, event_key, timer_no, expires_at, shape)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/
ON CONFLICT (execution_id, name) DO UPDATE SET promise_no = excluded.promise_no, state = excluded.state,
    created_at = excluded.created_at, value = excluded.value, failure = excluded.failure,
    settled_at = excluded.settled_at, settled_by = excluded.settled_by, event_key = excluded.event_key,
    timer_no = excluded.timer_no, expires_at = excluded.expires_at, shape = excluded.shape;

-- name: by_key
-- Promises by execution and name.
SELECT execution_id, name, org, promise_no, state, created_at, CAST(value AS BLOB), CAST(failure AS BLOB), settled_at,
    CAST(settled_by AS BLOB), event_key, timer_no, expires_at, CAST(shape AS BLOB)
FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_promises ON execution_id = wanted.column1 AND name = wanted.column2;

-- name: of_execution
-- All promises of one execution.
SELECT execution_id, name, org, promise_no, state, created_at, CAST(value AS BLOB), CAST(failure AS BLOB), settled_at,
    CAST(settled_by AS BLOB), event_key, timer_no, expires_at, CAST(shape AS BLOB)
FROM holdfast_promises WHERE execution_id = ? AND org = ? ORDER BY promise_no, name;

-- name: forget
-- Settlements that came early, for promises that nobody has made.
DELETE FROM holdfast_promises WHERE promise_no = 0 AND expires_at <= ?;
