-- name: upsert
-- Events and broadcasts on their way to many.
INSERT INTO holdfast_deliveries (id, org, kind, key, data, sent_at, cursor, bound, delivered, created_before, consume,
    done_at)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/
ON CONFLICT (id) DO UPDATE SET cursor = excluded.cursor, delivered = excluded.delivered, done_at = excluded.done_at;

-- name: open
-- Those that have not reached everybody yet, the oldest first.
SELECT id, org, kind, key, CAST(data AS BLOB), sent_at, cursor, bound, delivered, created_before, consume, done_at
FROM holdfast_deliveries WHERE done_at IS NULL ORDER BY id LIMIT ?;

-- name: by_id
SELECT id, org, kind, key, CAST(data AS BLOB), sent_at, cursor, bound, delivered, created_before, consume, done_at
FROM holdfast_deliveries WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: forget
-- Those that were done long ago.
DELETE FROM holdfast_deliveries WHERE done_at < ?;
