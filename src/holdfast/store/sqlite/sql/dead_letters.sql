-- name: insert
-- Signals that were accepted but never read. A turn that is run again may refuse the same one again.
INSERT INTO holdfast_dead_letters (execution_id, seq, org, reason, at) VALUES /*row*/(?, ?, ?, ?, ?)/*end*/
ON CONFLICT (execution_id, seq) DO NOTHING;

-- name: bury
-- All signals of one execution after a number, but for those that are dead letters already.
INSERT INTO holdfast_dead_letters (execution_id, seq, org, reason, at)
SELECT e.id, v.seq, e.org, ?, ?
FROM holdfast_executions AS e CROSS JOIN holdfast_events AS v ON v.execution_id = e.id
WHERE e.id = ? AND v.seq > ? AND v.type = 'SIGNAL_RECEIVED'
ON CONFLICT (execution_id, seq) DO NOTHING;

-- name: of_org
-- The newest dead letters of an org.
SELECT execution_id, seq, org, reason, at FROM holdfast_dead_letters WHERE org = ?
ORDER BY at DESC, execution_id DESC, seq DESC LIMIT ?;

-- name: of_execution
-- The newest dead letters of one execution.
SELECT execution_id, seq, org, reason, at FROM holdfast_dead_letters WHERE execution_id = ? AND org = ?
ORDER BY seq DESC LIMIT ?;
