-- name: upsert
-- What is on its way to many.
INSERT INTO holdfast_deliveries (id, org, kind, key, data, sent_at, cursor, bound, delivered, correlation, consume,
    kept, idempotency_key, done_at)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/
ON CONFLICT (id) DO UPDATE SET cursor = excluded.cursor, delivered = excluded.delivered, done_at = excluded.done_at;

-- name: open
-- The oldest one of each key that has not reached everybody yet.
SELECT min(id), org, kind, key, CAST(data AS BLOB), sent_at, cursor, bound, delivered, correlation, consume, kept,
    idempotency_key, done_at
FROM holdfast_deliveries WHERE done_at IS NULL GROUP BY org, kind, key ORDER BY min(id) LIMIT ?;

-- name: under_way
-- What is on its way to these keys.
SELECT d.org, d.kind, d.key, d.id FROM (VALUES /*row*/(?, ?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_deliveries AS d
    ON d.org = wanted.column1 AND d.kind = wanted.column2 AND d.key = wanted.column3 AND d.done_at IS NULL;

-- name: by_id
SELECT id, org, kind, key, CAST(data AS BLOB), sent_at, cursor, bound, delivered, correlation, consume, kept,
    idempotency_key, done_at
FROM holdfast_deliveries WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: next_due
-- Whether anything is on its way: it is due at once.
SELECT min(sent_at) FROM holdfast_deliveries WHERE done_at IS NULL;

-- name: forget
-- Those that were done long ago, unless a repeated request could still ask how many got it.
DELETE FROM holdfast_deliveries WHERE done_at < ? AND NOT EXISTS (
    SELECT 1 FROM holdfast_requests AS r
    WHERE r.org = holdfast_deliveries.org AND r.request_id = holdfast_deliveries.idempotency_key);
