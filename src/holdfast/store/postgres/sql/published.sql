-- name: upsert
-- Events that are kept, and how many have got them.
INSERT INTO holdfast_published (id, org, key, data, published_at, expires_at, correlation, created_before, consume,
    delivered)
SELECT id, org, key, data, published_at, expires_at, correlation, created_before = 1, consume = 1, delivered
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[],
    $9::bigint[], $10::bigint[])
    AS n (id, org, key, data, published_at, expires_at, correlation, created_before, consume, delivered)
ON CONFLICT (id) DO UPDATE SET delivered = excluded.delivered;

-- name: delete
-- Events that were consumed or removed.
DELETE FROM holdfast_published WHERE id = ANY ($1::bigint[]);

-- name: look_back
-- The first kept events of some keys for new waits, the oldest first.
SELECT wanted.no, p.id, p.org, p.key, p.data, p.published_at, p.expires_at, p.correlation, p.created_before, p.consume,
    p.delivered
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
    AS wanted (no, org, key, correlation, after, since_at)
CROSS JOIN LATERAL (
    SELECT * FROM holdfast_published AS p
    WHERE p.org = wanted.org AND p.key = wanted.key AND p.id > wanted.after AND p.published_at >= wanted.since_at
        AND p.expires_at > $7::bigint AND p.correlation IS NOT DISTINCT FROM wanted.correlation
    ORDER BY p.id LIMIT $8::bigint) AS p
ORDER BY wanted.no, p.id;

-- name: by_id
-- Kept events by number.
SELECT id, org, key, data, published_at, expires_at, correlation, created_before, consume, delivered
FROM holdfast_published WHERE id = ANY ($1::bigint[]);

-- name: topics
-- Which topics these events belong to, kept or dead.
SELECT org, key FROM holdfast_published WHERE id = ANY ($1::bigint[])
UNION SELECT org, key FROM holdfast_dead_events WHERE id = ANY ($1::bigint[]);

-- name: oldest
-- The oldest kept events of some keys.
SELECT wanted.no, p.id, p.org, p.key, p.data, p.published_at, p.expires_at, p.correlation, p.created_before, p.consume,
    p.delivered
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) AS wanted (no, org, key, most)
CROSS JOIN LATERAL (
    SELECT * FROM holdfast_published AS p WHERE p.org = wanted.org AND p.key = wanted.key
    ORDER BY p.id LIMIT wanted.most) AS p
ORDER BY wanted.no, p.id;

-- name: expired
-- Events whose time is over.
SELECT id, org, key FROM holdfast_published WHERE expires_at <= $1::bigint ORDER BY expires_at LIMIT $2::bigint;

-- name: keys
-- How many events these keys keep.
SELECT k.org, k.key, k.retained, k.dropped FROM unnest($1::text[], $2::text[]) AS wanted (org, key)
JOIN holdfast_event_keys AS k ON k.org = wanted.org AND k.key = wanted.key;

-- name: upsert_keys
INSERT INTO holdfast_event_keys (org, key, retained, dropped)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])
ON CONFLICT (org, key) DO UPDATE SET retained = excluded.retained, dropped = excluded.dropped;

-- name: dead_letter
-- Events nobody has got.
INSERT INTO holdfast_dead_events (id, org, key, data, published_at, correlation, reason, at)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[],
    $8::bigint[])
ON CONFLICT DO NOTHING;

-- name: dead_by_id
-- Some of them.
SELECT id, org, key, data, published_at, correlation, reason, at FROM holdfast_dead_events
WHERE id = ANY ($1::bigint[]);

-- name: forget_dead
-- Dead events that nobody has asked for in all this time.
DELETE FROM holdfast_dead_events WHERE id = ANY (ARRAY (
    SELECT id FROM holdfast_dead_events WHERE at < $1::bigint ORDER BY at LIMIT $2::bigint FOR UPDATE SKIP LOCKED));

-- name: replay_dead
-- No longer dead.
DELETE FROM holdfast_dead_events WHERE id = ANY ($1::bigint[]);

-- name: triggers
-- Workflows that events of these keys start.
SELECT t.org, t.key, t.kind, t.version, t.queue, t.filter FROM unnest($1::text[], $2::text[]) AS wanted (org, key)
JOIN holdfast_event_triggers AS t ON t.org = wanted.org AND t.key = wanted.key;

-- name: delete_triggers
-- What workflow kinds were started by, before they are registered anew.
DELETE FROM holdfast_event_triggers AS t USING unnest($1::text[], $2::text[]) AS n (org, kind)
WHERE t.org = n.org AND t.kind = n.kind;

-- name: upsert_triggers
INSERT INTO holdfast_event_triggers (org, key, kind, version, queue, filter)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
ON CONFLICT (org, key, kind) DO UPDATE SET version = excluded.version, queue = excluded.queue, filter = excluded.filter;

-- name: page
-- Kept events of an org, the newest first.
SELECT id, org, key, data, published_at, expires_at, correlation, created_before, consume, delivered
FROM holdfast_published WHERE org = $1::text AND id < $2::bigint ORDER BY id DESC LIMIT $3::bigint;

-- name: page_of_key
-- Kept events of a key, the newest first.
SELECT id, org, key, data, published_at, expires_at, correlation, created_before, consume, delivered
FROM holdfast_published WHERE org = $1::text AND key = $4::text AND id < $2::bigint ORDER BY id DESC LIMIT $3::bigint;

-- name: dead
-- Events nobody has got, the newest first.
SELECT id, org, key, data, published_at, correlation, reason, at FROM holdfast_dead_events
WHERE org = $1::text AND id < $2::bigint ORDER BY id DESC LIMIT $3::bigint;

-- name: dead_of_key
-- Events of a key nobody has got, the newest first.
SELECT id, org, key, data, published_at, correlation, reason, at FROM holdfast_dead_events
WHERE org = $1::text AND key = $4::text AND id < $2::bigint ORDER BY id DESC LIMIT $3::bigint;

-- name: key
-- How many events a key keeps.
SELECT retained, dropped FROM holdfast_event_keys WHERE org = $1::text AND key = $2::text;
