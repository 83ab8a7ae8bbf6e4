-- name: upsert
-- Events that are kept, and how many have got them.
INSERT INTO holdfast_published (id, org, key, data, published_at, expires_at, correlation, created_before, consume,
    delivered)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/ ON CONFLICT (id) DO UPDATE SET delivered = excluded.delivered;

-- name: delete
-- Events that were consumed or removed.
DELETE FROM holdfast_published WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: look_back
-- Kept events of a key for a new wait, the oldest first.
SELECT id, org, key, CAST(data AS BLOB), published_at, expires_at, correlation, created_before, consume, delivered
FROM holdfast_published
WHERE org = ? AND key = ? AND id > ? AND published_at >= ? AND expires_at > ? AND correlation IS ? ORDER BY id;

-- name: by_id
-- Kept events by number.
SELECT id, org, key, CAST(data AS BLOB), published_at, expires_at, correlation, created_before, consume, delivered
FROM holdfast_published WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: page
-- Kept events of an org, the newest first.
SELECT id, org, key, CAST(data AS BLOB), published_at, expires_at, correlation, created_before, consume, delivered
FROM holdfast_published WHERE org = ?1 AND (?2 IS NULL OR key = ?2) AND id < ?3 ORDER BY id DESC LIMIT ?4;

-- name: oldest
-- The oldest kept events of a key.
SELECT id, org, key, CAST(data AS BLOB), published_at, expires_at, correlation, created_before, consume, delivered
FROM holdfast_published WHERE org = ? AND key = ? ORDER BY id LIMIT ?;

-- name: expired
-- Events whose time is over.
SELECT id, org, key, CAST(data AS BLOB), published_at, expires_at, correlation, created_before, consume, delivered
FROM holdfast_published WHERE expires_at <= ? ORDER BY expires_at LIMIT ?;

-- name: delete_triggers
-- What workflow kinds were started by, before they are registered anew.
DELETE FROM holdfast_event_triggers WHERE /*row*/(org = ? AND kind = ?)/*or*/;
