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

-- name: forget
-- Answers that nobody will ask for again: their time is over, and so is that of what they have started.
DELETE FROM holdfast_requests WHERE expires_at < ?1 AND NOT EXISTS (
    SELECT 1 FROM holdfast_executions AS e
    WHERE e.id = holdfast_requests.execution_id AND (e.closed_at IS NULL OR e.closed_at + holdfast_requests.ttl > ?1));
