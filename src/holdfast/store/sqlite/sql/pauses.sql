-- name: upsert
-- Queues and workers that were paused, or are to be drained.
INSERT INTO holdfast_pauses (org, what, name, mode, since_at, reason) VALUES /*row*/(?, ?, ?, ?, ?, ?)/*end*/
ON CONFLICT (org, what, name) DO UPDATE SET mode = excluded.mode, since_at = excluded.since_at, reason = excluded.reason;

-- name: delete
-- What goes on.
DELETE FROM holdfast_pauses WHERE (org, what, name) IN (VALUES /*row*/(?, ?, ?)/*end*/);

-- name: forget_workers
-- Sessions that have ended.
DELETE FROM holdfast_pauses WHERE what = 'worker' AND name IN (VALUES /*row*/(?)/*end*/);

-- name: by_key
SELECT org, what, name, mode, since_at, reason FROM holdfast_pauses
WHERE (org, what, name) IN (VALUES /*row*/(?, ?, ?)/*end*/);

-- name: all
SELECT org, what, name, mode, since_at, reason FROM holdfast_pauses ORDER BY org, what, name;
