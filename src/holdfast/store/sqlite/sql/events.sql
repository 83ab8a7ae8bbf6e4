-- name: insert
-- Append to histories; a number that is taken is an error, never a silent loss.
INSERT INTO holdfast_events (execution_id, seq, type, version, at, data) VALUES /*row*/(?, ?, ?, ?, ?, ?)/*end*/;

-- name: page
-- Part of one history in order.
SELECT seq, at, type, version, CAST(data AS BLOB) FROM holdfast_events
WHERE execution_id = ? AND seq > ? AND EXISTS (SELECT 1 FROM holdfast_executions AS e WHERE e.id = execution_id AND e.org = ?)
ORDER BY seq LIMIT ?;

-- name: page_of_types
-- The events of some types in part of one history, in order.
SELECT seq, at, type, version, CAST(data AS BLOB) FROM holdfast_events
WHERE execution_id = ? AND seq > ? AND EXISTS (SELECT 1 FROM holdfast_executions AS e WHERE e.id = execution_id AND e.org = ?)
AND type IN (SELECT value FROM json_each(?))
ORDER BY seq LIMIT ?;

-- name: of_each
-- The events of some types in several histories, each in order.
SELECT e.id, v.seq, v.at, v.type, v.version, CAST(v.data AS BLOB)
FROM json_each(?) AS wanted CROSS JOIN holdfast_executions AS e ON e.id = wanted.value AND e.org = ?
CROSS JOIN holdfast_events AS v ON v.execution_id = e.id AND v.type IN (SELECT value FROM json_each(?))
ORDER BY e.id, v.seq;

-- name: last
-- The last event of each execution.
SELECT e.id, e.org, v.seq, v.at, v.type, v.version, CAST(v.data AS BLOB)
FROM holdfast_executions AS e CROSS JOIN holdfast_events AS v ON v.execution_id = e.id AND v.seq = e.last_seq
WHERE e.id IN (VALUES /*row*/(?)/*end*/);

-- name: unread
-- Signals and updates of one execution that came after a number.
SELECT seq, at, type, version, CAST(data AS BLOB) FROM holdfast_events
WHERE execution_id = ? AND seq > ? AND type IN ('SIGNAL_RECEIVED', 'UPDATE_REQUESTED') ORDER BY seq;

-- name: given
-- What one execution was given from outside after a number.
SELECT seq, at, type, version, CAST(data AS BLOB) FROM holdfast_events
WHERE execution_id = ? AND seq > ? AND type IN ('SIGNAL_RECEIVED', 'UPDATE_REQUESTED', 'PROMISE_RESOLVED',
    'PROMISE_REJECTED', 'EVENT_RECEIVED', 'BROADCAST_RECEIVED') ORDER BY seq;

-- name: by_seq
-- Single events of one execution.
SELECT seq, at, type, version, CAST(data AS BLOB) FROM holdfast_events
WHERE execution_id = ? AND seq IN (SELECT value FROM json_each(?)) ORDER BY seq;
