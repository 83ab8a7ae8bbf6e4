-- name: insert
-- Answers kept for repeated requests: how many of the keys were free.
WITH made AS (
    INSERT INTO holdfast_requests (org, request_id, fingerprint, answer, created_at, ttl, expires_at, execution_id,
        subject)
    SELECT org, request_id, fingerprint, answer, created_at, ttl, expires_at, NULLIF(execution_id, ''),
        NULLIF(subject, '')
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[],
        $9::text[])
        AS n (org, request_id, fingerprint, answer, created_at, ttl, expires_at, execution_id, subject)
    ON CONFLICT (org, request_id) DO NOTHING RETURNING 1)
SELECT count(*) FROM made;

-- name: by_id
-- Answers given to these requests.
SELECT r.org, r.request_id, r.fingerprint, r.answer, r.created_at, r.ttl, r.expires_at, r.execution_id, r.subject
FROM unnest($1::text[], $2::text[]) AS wanted (org, request_id)
JOIN holdfast_requests AS r ON r.org = wanted.org AND r.request_id = wanted.request_id;

-- name: expired
-- Keys that nobody will ask for again: their time is over, and so is that of what they have started.
SELECT r.org, r.request_id FROM holdfast_requests AS r WHERE r.expires_at <= $1::bigint AND NOT EXISTS (
    SELECT 1 FROM holdfast_executions AS e
    WHERE e.id = r.execution_id AND (e.closed_at IS NULL OR e.closed_at + r.ttl > $1::bigint))
ORDER BY r.expires_at LIMIT $2::bigint FOR UPDATE OF r SKIP LOCKED;

-- name: delete
-- Keys that are forgotten: how many of them there were.
WITH gone AS (
    DELETE FROM holdfast_requests AS r USING unnest($1::text[], $2::text[]) AS n (org, request_id)
    WHERE r.org = n.org AND r.request_id = n.request_id RETURNING 1)
SELECT count(*) FROM gone;
