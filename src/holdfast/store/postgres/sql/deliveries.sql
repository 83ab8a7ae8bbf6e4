-- name: upsert
-- What is on its way to many.
INSERT INTO holdfast_deliveries (id, org, kind, key, data, sent_at, cursor, bound, delivered, correlation, consume,
    kept, idempotency_key, done_at)
SELECT id, org, kind, key, data, sent_at, "cursor", bound, delivered, correlation, consume = 1, kept = 1,
    idempotency_key, done_at
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::text[], $11::bigint[], $12::bigint[], $13::text[], $14::bigint[])
    AS n (id, org, kind, key, data, sent_at, "cursor", bound, delivered, correlation, consume, kept, idempotency_key,
        done_at)
ON CONFLICT (id) DO UPDATE SET cursor = excluded.cursor, delivered = excluded.delivered, done_at = excluded.done_at;

-- name: open
-- The oldest one of each key that has not reached everybody yet.
SELECT id, org, kind, key, data, sent_at, "cursor", bound, delivered, correlation, consume, kept, idempotency_key,
    done_at
FROM (
    SELECT DISTINCT ON (org, kind, key) * FROM holdfast_deliveries WHERE done_at IS NULL ORDER BY org, kind, key, id)
    AS d
ORDER BY id LIMIT $1::bigint;

-- name: under_way
-- What is on its way to these keys.
SELECT d.org, d.kind, d.key, d.id FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (org, kind, key)
JOIN holdfast_deliveries AS d ON d.org = wanted.org AND d.kind = wanted.kind AND d.key = wanted.key
WHERE d.done_at IS NULL;

-- name: forget
-- Those that were done long ago, unless a repeated request could still ask how many got it.
DELETE FROM holdfast_deliveries WHERE id = ANY (ARRAY (
    SELECT d.id FROM holdfast_deliveries AS d WHERE d.done_at < $1::bigint AND NOT EXISTS (
        SELECT 1 FROM holdfast_requests AS r WHERE r.org = d.org AND r.request_id = d.idempotency_key)
    ORDER BY d.done_at LIMIT $2::bigint FOR UPDATE OF d SKIP LOCKED));

-- name: by_id
-- One that is on its way to many, or was.
SELECT id, org, kind, key, data, sent_at, cursor, bound, delivered, correlation, consume, kept, idempotency_key, done_at
FROM holdfast_deliveries WHERE id = $1::bigint;
