-- name: upsert
-- Answers kept for repeated requests.
INSERT INTO holdfast_requests (org, request_id, fingerprint, answer, created_at) VALUES /*row*/(?, ?, ?, ?, ?)/*end*/
ON CONFLICT (org, request_id) DO UPDATE SET fingerprint = excluded.fingerprint, answer = excluded.answer,
    created_at = excluded.created_at;

-- name: by_id
-- Answers given to these requests.
SELECT org, request_id, fingerprint, answer, created_at
FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_requests ON org = wanted.column1 AND request_id = wanted.column2;

-- name: forget
-- Answers that nobody will ask for again.
DELETE FROM holdfast_requests WHERE created_at < ?;
