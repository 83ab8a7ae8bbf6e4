-- name: upsert
-- Answers kept for repeated requests.
INSERT INTO holdfast_requests (org, request_id, fingerprint, answer, created_at, ttl, expires_at, execution_id, subject)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''), NULLIF(?, ''))/*end*/
ON CONFLICT (org, request_id) DO UPDATE SET fingerprint = excluded.fingerprint, answer = excluded.answer,
    created_at = excluded.created_at, ttl = excluded.ttl, expires_at = excluded.expires_at,
    execution_id = excluded.execution_id, subject = excluded.subject;

-- name: by_id
-- Answers given to these requests.
SELECT org, request_id, fingerprint, answer, created_at, ttl, expires_at, execution_id, subject
FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_requests ON org = wanted.column1 AND request_id = wanted.column2;

-- name: expired
-- Keys that nobody will ask for again: their time is over, and so is that of what they have started.
SELECT r.org, r.request_id FROM holdfast_requests AS r WHERE r.expires_at <= ? AND NOT EXISTS (
    SELECT 1 FROM holdfast_executions AS e
    WHERE e.id = r.execution_id AND (e.closed_at IS NULL OR e.closed_at + r.ttl > ?))
ORDER BY r.expires_at LIMIT ?;

-- name: delete
-- Keys that are forgotten.
DELETE FROM holdfast_requests WHERE /*row*/(org = ? AND request_id = ?)/*or*/;

-- name: take_lock
-- Deletes nothing, but a transaction that was only reading holds the write lock from here on.
DELETE FROM holdfast_requests WHERE 0;
