-- name: insert
-- Signals that were accepted but never read. A turn that is run again may refuse the same one again.
INSERT INTO holdfast_dead_letters (execution_id, seq, org, reason, at) VALUES /*row*/(?, ?, ?, ?, ?)/*end*/
ON CONFLICT (execution_id, seq) DO NOTHING;

-- name: dead_letter
-- All signals of one execution after a number, but for those that are dead letters already.
INSERT INTO holdfast_dead_letters (execution_id, seq, org, reason, at)
SELECT e.id, v.seq, e.org, ?, ?
FROM holdfast_executions AS e CROSS JOIN holdfast_events AS v ON v.execution_id = e.id
WHERE e.id = ? AND v.seq > ? AND v.type = 'SIGNAL_RECEIVED'
ON CONFLICT (execution_id, seq) DO NOTHING;

-- name: of_org
-- The newest dead letters of an org, with their signals.
SELECT d.execution_id, d.seq, d.org, d.reason, d.at, d.settled, v.at, v.type, v.version, CAST(v.data AS BLOB)
FROM holdfast_dead_letters AS d LEFT JOIN holdfast_events AS v ON v.execution_id = d.execution_id AND v.seq = d.seq
WHERE d.org = ? AND d.settled = 0
ORDER BY d.at DESC, d.execution_id DESC, d.seq DESC LIMIT ?;

-- name: of_execution
-- The newest dead letters of one execution, with their signals.
SELECT d.execution_id, d.seq, d.org, d.reason, d.at, d.settled, v.at, v.type, v.version, CAST(v.data AS BLOB)
FROM holdfast_dead_letters AS d LEFT JOIN holdfast_events AS v ON v.execution_id = d.execution_id AND v.seq = d.seq
WHERE d.execution_id = ? AND d.org = ? AND d.settled = 0
ORDER BY d.seq DESC LIMIT ?;

-- name: by_key
-- Single dead letters, also settled ones, with their signals.
SELECT d.execution_id, d.seq, d.org, d.reason, d.at, d.settled, v.at, v.type, v.version, CAST(v.data AS BLOB)
FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_dead_letters AS d ON d.execution_id = wanted.column1 AND d.seq = wanted.column2
LEFT JOIN holdfast_events AS v ON v.execution_id = d.execution_id AND v.seq = d.seq;

-- name: settle
-- They have been redelivered or removed.
UPDATE holdfast_dead_letters SET settled = 1 WHERE /*row*/(execution_id = ? AND seq = ?)/*or*/;
