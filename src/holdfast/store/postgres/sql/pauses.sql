-- name: upsert
-- Queues and workers that were paused, or are to be drained.
INSERT INTO holdfast_pauses (org, what, name, mode, since_at, reason)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[])
ON CONFLICT (org, what, name) DO UPDATE SET mode = excluded.mode, since_at = excluded.since_at, reason = excluded.reason;

-- name: delete
-- What goes on.
DELETE FROM holdfast_pauses AS p USING unnest($1::text[], $2::text[], $3::text[]) AS n (org, what, name)
WHERE p.org = n.org AND p.what = n.what AND p.name = n.name;

-- name: forget_workers
-- Sessions that have ended.
DELETE FROM holdfast_pauses WHERE what = 'worker' AND name = ANY ($1::text[]);

-- name: by_key
-- Whoever changes one has locked its org before.
SELECT p.org, p.what, p.name, p.mode, p.since_at, p.reason
FROM holdfast_pauses AS p JOIN unnest($1::text[], $2::text[], $3::text[]) AS n (org, what, name)
    ON p.org = n.org AND p.what = n.what AND p.name = n.name;

-- name: all
SELECT org, what, name, mode, since_at, reason FROM holdfast_pauses ORDER BY org, what, name;
