-- name: insert
-- Signals that were accepted but never read. A turn that is run again may refuse the same one again.
INSERT INTO holdfast_dead_letters (execution_id, seq, org, reason, at)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[])
ON CONFLICT (execution_id, seq) DO NOTHING;

-- name: dead_letter
-- All signals of one execution after a number, but for those that are dead letters already.
INSERT INTO holdfast_dead_letters (execution_id, seq, org, reason, at)
SELECT e.id, v.seq, e.org, $1::text, $2::bigint
FROM holdfast_executions AS e JOIN holdfast_events AS v ON v.execution_id = e.id
WHERE e.id = $3::text AND v.seq > $4::bigint AND v.type = 'SIGNAL_RECEIVED'
ON CONFLICT (execution_id, seq) DO NOTHING;

-- name: by_key
-- Single dead letters, also settled ones, with their signals.
SELECT d.execution_id, d.seq, d.org, d.reason, d.at, d.settled, v.at, v.type, v.version, v.data
FROM unnest($1::text[], $2::bigint[]) AS wanted (execution_id, seq)
JOIN holdfast_dead_letters AS d ON d.execution_id = wanted.execution_id AND d.seq = wanted.seq
LEFT JOIN holdfast_events AS v ON v.execution_id = d.execution_id AND v.seq = d.seq;

-- name: settle
-- They have been redelivered or removed.
UPDATE holdfast_dead_letters AS d SET settled = true
FROM unnest($1::text[], $2::bigint[]) AS n (execution_id, seq)
WHERE d.execution_id = n.execution_id AND d.seq = n.seq;

-- name: of_org
-- The newest dead letters of an org, with their signals.
SELECT d.execution_id, d.seq, d.org, d.reason, d.at, d.settled, v.at, v.type, v.version, v.data
FROM (
    SELECT * FROM holdfast_dead_letters AS d WHERE d.org = $1::text AND NOT d.settled
    ORDER BY d.at DESC, d.execution_id DESC, d.seq DESC LIMIT $2::bigint) AS d
LEFT JOIN LATERAL (
    SELECT * FROM holdfast_events AS v WHERE v.execution_id = d.execution_id AND v.seq = d.seq OFFSET 0) AS v ON true
ORDER BY d.at DESC, d.execution_id DESC, d.seq DESC;

-- name: of_execution
-- The newest dead letters of one execution, with their signals.
SELECT d.execution_id, d.seq, d.org, d.reason, d.at, d.settled, v.at, v.type, v.version, v.data
FROM (
    SELECT * FROM holdfast_dead_letters AS d WHERE d.execution_id = $2::text AND d.org = $1::text AND NOT d.settled
    ORDER BY d.seq DESC LIMIT $3::bigint) AS d
LEFT JOIN LATERAL (
    SELECT * FROM holdfast_events AS v WHERE v.execution_id = d.execution_id AND v.seq = d.seq OFFSET 0) AS v ON true
ORDER BY d.seq DESC;
