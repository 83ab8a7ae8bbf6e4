-- name: insert
-- Append to histories; a number that is taken is an error, never a silent loss.
INSERT INTO holdfast_events (execution_id, seq, type, version, at, data)
SELECT * FROM each($1::text[], $2::bigint[], $3::text[], $4::integer[], $5::bigint[], $6::_text)
    AS n (execution_id, seq, type, version, at, data);

-- name: unread
-- Signals and updates of executions that came after a number.
SELECT v.execution_id, v.seq, v.at, v.type, v.version, v.data
FROM unnest($1::text[], $2::bigint[]) AS wanted (execution_id, after)
JOIN holdfast_events AS v ON v.execution_id = wanted.execution_id AND v.seq > wanted.after
WHERE v.type IN ('SIGNAL_RECEIVED', 'UPDATE_REQUESTED') ORDER BY v.execution_id, v.seq;

-- name: given
-- What executions were given from outside after a number.
SELECT v.execution_id, v.seq, v.at, v.type, v.version, v.data
FROM unnest($1::text[], $2::bigint[]) AS wanted (execution_id, after)
JOIN holdfast_events AS v ON v.execution_id = wanted.execution_id AND v.seq > wanted.after
WHERE v.type IN ('SIGNAL_RECEIVED', 'UPDATE_REQUESTED', 'PROMISE_RESOLVED', 'PROMISE_REJECTED', 'EVENT_RECEIVED',
    'BROADCAST_RECEIVED') ORDER BY v.execution_id, v.seq;

-- name: by_seq
-- Single events.
SELECT v.execution_id, v.seq, v.at, v.type, v.version, v.data
FROM unnest($1::text[], $2::bigint[]) AS wanted (execution_id, seq)
JOIN holdfast_events AS v ON v.execution_id = wanted.execution_id AND v.seq = wanted.seq;

-- name: page
-- Part of one history in order.
SELECT v.seq, v.at, v.type, v.version, v.data FROM holdfast_events AS v
WHERE v.execution_id = $2::text AND v.seq > $3::bigint
    AND EXISTS (SELECT 1 FROM holdfast_executions AS e WHERE e.id = $2::text AND e.org = $1::text)
ORDER BY v.seq LIMIT $4::bigint;

-- name: page_of_types
-- The events of some types in part of one history, in order.
SELECT v.seq, v.at, v.type, v.version, v.data FROM holdfast_events AS v
WHERE v.execution_id = $2::text AND v.seq > $3::bigint AND v.type = ANY ($5::text[])
    AND EXISTS (SELECT 1 FROM holdfast_executions AS e WHERE e.id = $2::text AND e.org = $1::text)
ORDER BY v.seq LIMIT $4::bigint;

-- name: of_each
-- The events of some types in several histories, each in order.
SELECT e.id, v.seq, v.at, v.type, v.version, v.data
FROM holdfast_executions AS e
CROSS JOIN LATERAL (
    SELECT * FROM holdfast_events AS v WHERE v.execution_id = e.id AND v.type = ANY ($3::text[]) OFFSET 0) AS v
WHERE e.id = ANY ($2::text[]) AND e.org = $1::text ORDER BY e.id, v.seq;

-- name: last
-- The last event of each execution.
SELECT e.id, e.org, v.seq, v.at, v.type, v.version, v.data
FROM holdfast_executions AS e
CROSS JOIN LATERAL (
    SELECT * FROM holdfast_events AS v WHERE v.execution_id = e.id AND v.seq = e.last_seq OFFSET 0) AS v
WHERE e.id = ANY ($1::text[]);

-- name: whole
-- The histories of some executions, each after a number and in order.
SELECT wanted.no, v.seq, v.at, v.type, v.version, v.data
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) AS wanted (no, org, execution_id, after)
CROSS JOIN LATERAL (
    SELECT 1 FROM holdfast_executions AS e WHERE e.id = wanted.execution_id AND e.org = wanted.org OFFSET 0) AS e
CROSS JOIN LATERAL (
    SELECT * FROM holdfast_events AS v WHERE v.execution_id = wanted.execution_id AND v.seq > wanted.after
    ORDER BY v.seq OFFSET 0) AS v;
