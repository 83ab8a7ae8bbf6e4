-- name: upsert
-- Promises that came or were settled.
INSERT INTO holdfast_promises (execution_id, name, org, promise_no, state, created_at, value, failure, settled_at,
    settled_by, event_key, timer_no, expires_at, shape)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::text[])
ON CONFLICT (execution_id, name) DO UPDATE SET promise_no = excluded.promise_no, state = excluded.state,
    created_at = excluded.created_at, value = excluded.value, failure = excluded.failure,
    settled_at = excluded.settled_at, settled_by = excluded.settled_by, event_key = excluded.event_key,
    timer_no = excluded.timer_no, expires_at = excluded.expires_at, shape = excluded.shape;

-- name: by_key
-- Promises by execution and name.
SELECT p.execution_id, p.name, p.org, p.promise_no, p.state, p.created_at, p.value, p.failure, p.settled_at,
    p.settled_by, p.event_key, p.timer_no, p.expires_at, p.shape
FROM unnest($1::text[], $2::text[]) AS wanted (execution_id, name)
JOIN holdfast_promises AS p ON p.execution_id = wanted.execution_id AND p.name = wanted.name;

-- name: forget
-- Settlements that came early, for promises that nobody has made.
DELETE FROM holdfast_promises AS p USING (
    SELECT execution_id, name FROM holdfast_promises WHERE promise_no = 0 AND expires_at <= $1::bigint
    ORDER BY expires_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED) AS old
WHERE p.execution_id = old.execution_id AND p.name = old.name;

-- name: of_execution
-- All promises of one execution.
SELECT execution_id, name, org, promise_no, state, created_at, value, failure, settled_at, settled_by, event_key,
    timer_no, expires_at, shape
FROM holdfast_promises WHERE execution_id = $2::text AND org = $1::text ORDER BY promise_no, name;
