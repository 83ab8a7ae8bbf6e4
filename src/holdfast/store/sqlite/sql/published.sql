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

-- name: keys
-- How many events these keys keep.
SELECT k.org, k.key, k.retained, k.dropped FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_event_keys AS k ON k.org = wanted.column1 AND k.key = wanted.column2;

-- name: upsert_keys
INSERT INTO holdfast_event_keys (org, key, retained, dropped) VALUES /*row*/(?, ?, ?, ?)/*end*/
ON CONFLICT (org, key) DO UPDATE SET retained = excluded.retained, dropped = excluded.dropped;

-- name: dead_letter
-- Events nobody has got.
INSERT INTO holdfast_dead_events (id, org, key, data, published_at, correlation, reason, at)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?)/*end*/ ON CONFLICT DO NOTHING;

-- name: dead
-- Events nobody has got, the newest first.
SELECT id, org, key, CAST(data AS BLOB), published_at, correlation, reason, at FROM holdfast_dead_events
WHERE org = ?1 AND (?2 IS NULL OR key = ?2) AND id < ?3 ORDER BY id DESC LIMIT ?4;

-- name: dead_by_id
-- One of them.
SELECT id, org, key, CAST(data AS BLOB), published_at, correlation, reason, at FROM holdfast_dead_events
WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: forget_dead
-- Dead events that nobody has asked for in all this time.
DELETE FROM holdfast_dead_events WHERE id IN (SELECT id FROM holdfast_dead_events WHERE at < ? ORDER BY at LIMIT ?);

-- name: replay_dead
-- No longer dead.
DELETE FROM holdfast_dead_events WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: triggers
-- Workflows that events of these keys start.
SELECT t.org, t.key, t.kind, t.version, t.queue, t.filter FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_event_triggers AS t ON t.org = wanted.column1 AND t.key = wanted.column2;

-- name: delete_triggers
-- What workflow kinds were started by, before they are registered anew.
DELETE FROM holdfast_event_triggers WHERE /*row*/(org = ? AND kind = ?)/*or*/;

-- name: upsert_triggers
INSERT INTO holdfast_event_triggers (org, key, kind, version, queue, filter) VALUES /*row*/(?, ?, ?, ?, ?, ?)/*end*/
ON CONFLICT (org, key, kind) DO UPDATE SET version = excluded.version, queue = excluded.queue, filter = excluded.filter;
