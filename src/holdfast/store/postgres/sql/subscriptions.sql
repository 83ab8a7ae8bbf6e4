-- name: insert
-- New waits.
INSERT INTO holdfast_subscriptions (id, execution_id, wait_no, org, kind, key, created_at, eq_path, eq_value, filter,
    consume, promise, joins)
SELECT id, execution_id, wait_no, org, kind, key, created_at, eq_path, eq_value, filter, consume = 1, promise, joins
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[],
    $9::text[], $10::text[], $11::bigint[], $12::text[], $13::bigint[])
    AS n (id, execution_id, wait_no, org, kind, key, created_at, eq_path, eq_value, filter, consume, promise, joins);

-- name: delete
-- Waits that are over.
DELETE FROM holdfast_subscriptions WHERE id = ANY ($1::bigint[]);

-- name: purge
-- All waits of executions that are over.
DELETE FROM holdfast_subscriptions WHERE execution_id = ANY ($1::text[]);

-- name: by_wait
-- Waits by execution and number.
SELECT s.id, s.execution_id, s.wait_no, s.org, s.kind, s.key, s.created_at, s.eq_path, s.eq_value, s.filter, s.consume,
    s.promise, s.joins
FROM unnest($1::text[], $2::bigint[]) AS wanted (execution_id, wait_no)
JOIN holdfast_subscriptions AS s ON s.execution_id = wanted.execution_id AND s.wait_no = wanted.wait_no;

-- name: still_there
-- Which of these waits have not ended.
SELECT id FROM holdfast_subscriptions WHERE id = ANY ($1::bigint[]);

-- name: paths
-- The paths that waits of some keys are searched by: one step through the index for each.
SELECT wanted.no, p.path
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) AS wanted (no, org, kind, key)
CROSS JOIN LATERAL (
    WITH RECURSIVE paths (path) AS (
        SELECT min(s.eq_path) FROM holdfast_subscriptions AS s
        WHERE s.org = wanted.org AND s.kind = wanted.kind AND s.key = wanted.key AND s.eq_path IS NOT NULL
        UNION ALL
        SELECT (SELECT min(s.eq_path) FROM holdfast_subscriptions AS s
                WHERE s.org = wanted.org AND s.kind = wanted.kind AND s.key = wanted.key AND s.eq_path IS NOT NULL
                    AND s.eq_path > paths.path)
        FROM paths WHERE paths.path IS NOT NULL)
    SELECT path FROM paths WHERE path IS NOT NULL) AS p;

-- name: unfiltered
-- Waits of some keys that demand no equality, in the order of waiting.
SELECT wanted.no, s.id, s.execution_id, s.wait_no, s.org, s.kind, s.key, s.created_at, s.eq_path, s.eq_value, s.filter,
    s.consume, s.promise, s.joins
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
    AS wanted (no, org, kind, key, after, bound, most)
CROSS JOIN LATERAL (
    SELECT * FROM holdfast_subscriptions AS s
    WHERE s.org = wanted.org AND s.kind = wanted.kind AND s.key = wanted.key AND s.eq_path IS NULL
        AND s.id > wanted.after AND s.id < wanted.bound
    ORDER BY s.id LIMIT wanted.most) AS s;

-- name: with_value
-- Waits of some keys that demand one value at one path, in the order of waiting.
SELECT wanted.no, s.id, s.execution_id, s.wait_no, s.org, s.kind, s.key, s.created_at, s.eq_path, s.eq_value, s.filter,
    s.consume, s.promise, s.joins
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[],
    $9::text[]) AS wanted (no, org, kind, key, after, bound, most, path, value)
CROSS JOIN LATERAL (
    SELECT * FROM holdfast_subscriptions AS s
    WHERE s.org = wanted.org AND s.kind = wanted.kind AND s.key = wanted.key AND s.eq_path = wanted.path
        AND s.eq_value = wanted.value AND s.id > wanted.after AND s.id < wanted.bound
    ORDER BY s.id LIMIT wanted.most) AS s;

-- name: lock_topics
-- Whoever publishes, throws or begins to wait for these topics is alone with them until the transaction ends.
SELECT id FROM holdfast_topic_locks WHERE id = ANY ($1::integer[]) ORDER BY id FOR NO KEY UPDATE;

-- name: next_numbers
-- A block of numbers for waits, events and broadcasts: the number before its first.
SELECT nextval('holdfast_numbers');

-- name: of_execution
-- The waits of one execution.
SELECT id, execution_id, wait_no, org, kind, key, created_at, eq_path, eq_value, filter, consume, promise, joins
FROM holdfast_subscriptions WHERE execution_id = $2::text AND org = $1::text ORDER BY id;

-- name: page
-- Waits of a key in the order of waiting, for people. Two halves, because there are two indexes.
SELECT id, execution_id, wait_no, org, kind, key, created_at, eq_path, eq_value, filter, consume, promise, joins
FROM (
    (SELECT * FROM holdfast_subscriptions
    WHERE org = $1::text AND kind = $2::text AND key = $3::text AND eq_path IS NULL ORDER BY id LIMIT $4::bigint)
    UNION ALL
    (SELECT * FROM holdfast_subscriptions
    WHERE org = $1::text AND kind = $2::text AND key = $3::text AND eq_path IS NOT NULL ORDER BY id LIMIT $4::bigint)
    ) AS s
ORDER BY id LIMIT $4::bigint;
