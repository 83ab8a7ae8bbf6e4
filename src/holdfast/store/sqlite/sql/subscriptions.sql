-- name: insert
-- New waits.
INSERT INTO holdfast_subscriptions (id, execution_id, wait_no, org, kind, key, created_at, eq_path, eq_value, filter,
    consume, promise, joins)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/;

-- name: delete
-- Waits that are over.
DELETE FROM holdfast_subscriptions WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: purge
-- All waits of executions that are over.
DELETE FROM holdfast_subscriptions WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: by_wait
-- Waits by execution and number.
SELECT id, execution_id, wait_no, org, kind, key, created_at, eq_path, eq_value, filter, consume, promise, joins
FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_subscriptions ON execution_id = wanted.column1 AND wait_no = wanted.column2;

-- name: of_execution
-- The waits of one execution.
SELECT s.id, s.execution_id, s.wait_no, s.org, s.kind, s.key, s.created_at, s.eq_path, s.eq_value, s.filter, s.consume,
    s.promise, s.joins
FROM holdfast_subscriptions AS s WHERE s.execution_id = ? AND s.org = ? ORDER BY s.id;

-- name: paths
-- The paths that waits of a key are searched by: one step through the index for each.
WITH RECURSIVE paths (path) AS (
    SELECT min(eq_path) FROM holdfast_subscriptions WHERE org = ?1 AND kind = ?2 AND key = ?3 AND eq_path IS NOT NULL
    UNION ALL
    SELECT (SELECT min(s.eq_path) FROM holdfast_subscriptions AS s
            WHERE s.org = ?1 AND s.kind = ?2 AND s.key = ?3 AND s.eq_path > paths.path)
    FROM paths WHERE paths.path IS NOT NULL)
SELECT path FROM paths WHERE path IS NOT NULL;

-- name: unfiltered
-- Waits of a key that demand no equality, in the order of waiting.
SELECT id, execution_id, wait_no, org, kind, key, created_at, eq_path, eq_value, filter, consume, promise, joins
FROM holdfast_subscriptions
WHERE org = ? AND kind = ? AND key = ? AND eq_path IS NULL AND id > ? AND id < ? ORDER BY id LIMIT ?;

-- name: with_value
-- Waits of a key that demand this value at this path, in the order of waiting.
SELECT id, execution_id, wait_no, org, kind, key, created_at, eq_path, eq_value, filter, consume, promise, joins
FROM holdfast_subscriptions
WHERE org = ? AND kind = ? AND key = ? AND eq_path = ? AND eq_value = ? AND id > ? AND id < ? ORDER BY id LIMIT ?;

-- name: page
-- Waits of a key in the order of waiting, for people.
SELECT id, execution_id, wait_no, org, kind, key, created_at, eq_path, eq_value, filter, consume, promise, joins
FROM holdfast_subscriptions WHERE org = ? AND kind = ? AND key = ? ORDER BY id LIMIT ?;

-- name: last_id
-- The last number that was given to a wait, an event or a broadcast.
SELECT last FROM holdfast_sequences WHERE name = 'messages';

-- name: set_last_id
INSERT INTO holdfast_sequences (name, last) VALUES ('messages', ?)
ON CONFLICT (name) DO UPDATE SET last = max(last, excluded.last);
