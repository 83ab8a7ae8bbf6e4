-- name: lock
-- Heads, and those of the parents of open children, locked in the order of their ids. What is returned of a head that
-- had to be waited for is its newest version.
SELECT e.id, e.org, e.workflow_id, e.kind, e.version, e.queue, e.priority, e.state, e.created_at, e.updated_at,
    e.closed_at, e.last_seq, e.seen_seq, e.call_seq, e.signal_count, e.open_tasks, e.open_timers, e.open_children,
    e.open_waits, e.epoch, e.nonce, e.crashes, e.close_rounds, e.cancel_requested, e.waiting_for, e.stuck, e.metadata,
    e.parent_id, e.child_no, e.on_parent_close, e.successor
FROM holdfast_executions AS e
WHERE e.id = ANY (ARRAY (
    SELECT unnest($1::text[])
    UNION
    SELECT c.parent_id FROM holdfast_executions AS c
    WHERE c.id = ANY ($1::text[]) AND c.parent_id IS NOT NULL AND c.closed_at IS NULL))
ORDER BY e.id FOR NO KEY UPDATE OF e;

-- name: there
-- Which of these heads there are.
SELECT id FROM holdfast_executions WHERE id = ANY ($1::text[]);

-- name: lock_free
-- Those of these heads that nobody holds, locked: the first $2 of them in the order they are named in, or all.
SELECT e.id, e.org, e.workflow_id, e.kind, e.version, e.queue, e.priority, e.state, e.created_at, e.updated_at,
    e.closed_at, e.last_seq, e.seen_seq, e.call_seq, e.signal_count, e.open_tasks, e.open_timers, e.open_children,
    e.open_waits, e.epoch, e.nonce, e.crashes, e.close_rounds, e.cancel_requested, e.waiting_for, e.stuck, e.metadata,
    e.parent_id, e.child_no, e.on_parent_close, e.successor
FROM unnest($1::text[]) WITH ORDINALITY AS w (id, place) JOIN holdfast_executions AS e ON e.id = w.id
ORDER BY w.place LIMIT $2::bigint FOR NO KEY UPDATE OF e SKIP LOCKED;

-- name: lock_waiting
-- The same of those that still wait for a worker.
SELECT e.id, e.org, e.workflow_id, e.kind, e.version, e.queue, e.priority, e.state, e.created_at, e.updated_at,
    e.closed_at, e.last_seq, e.seen_seq, e.call_seq, e.signal_count, e.open_tasks, e.open_timers, e.open_children,
    e.open_waits, e.epoch, e.nonce, e.crashes, e.close_rounds, e.cancel_requested, e.waiting_for, e.stuck, e.metadata,
    e.parent_id, e.child_no, e.on_parent_close, e.successor
FROM unnest($1::text[]) WITH ORDINALITY AS w (id, place) JOIN holdfast_executions AS e ON e.id = w.id
WHERE EXISTS (SELECT 1 FROM holdfast_ready AS r WHERE r.execution_id = e.id AND r.worker IS NULL)
ORDER BY w.place LIMIT $2::bigint FOR NO KEY UPDATE OF e SKIP LOCKED;

-- name: insert
-- New heads; an id that exists already is an error.
INSERT INTO holdfast_executions (id, org, workflow_id, kind, version, queue, priority, state, created_at, updated_at,
    closed_at, last_seq, seen_seq, call_seq, signal_count, open_tasks, open_timers, open_children, open_waits, epoch,
    nonce, crashes, close_rounds, cancel_requested, waiting_for, stuck, metadata, parent_id, child_no, on_parent_close,
    successor)
SELECT id, org, workflow_id, kind, version, queue, priority, state, created_at, updated_at, NULLIF(closed_at, 0),
    last_seq, seen_seq, call_seq, signal_count, open_tasks, open_timers, open_children, open_waits, epoch, nonce,
    crashes, close_rounds, cancel_requested = 1, NULLIF(waiting_for, ''), NULLIF(stuck, ''), NULLIF(metadata, ''),
    NULLIF(parent_id, ''), child_no, NULLIF(on_parent_close, ''), NULLIF(successor, '')
FROM each($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[],
    $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
    $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[],
    $23::bigint[], $24::bigint[], $25::text[], $26::text[], $27::text[], $28::text[], $29::bigint[], $30::text[],
    $31::text[])
    AS n (id, org, workflow_id, kind, version, queue, priority, state, created_at, updated_at, closed_at, last_seq,
        seen_seq, call_seq, signal_count, open_tasks, open_timers, open_children, open_waits, epoch, nonce, crashes,
        close_rounds, cancel_requested, waiting_for, stuck, metadata, parent_id, child_no, on_parent_close, successor);

-- name: update
-- Heads that changed.
UPDATE holdfast_executions AS e SET version = n.version, queue = n.queue, priority = n.priority, state = n.state,
    updated_at = n.updated_at, closed_at = NULLIF(n.closed_at, 0), last_seq = n.last_seq, seen_seq = n.seen_seq,
    call_seq = n.call_seq, signal_count = n.signal_count, open_tasks = n.open_tasks, open_timers = n.open_timers,
    open_children = n.open_children, open_waits = n.open_waits, epoch = n.epoch, nonce = n.nonce, crashes = n.crashes,
    close_rounds = n.close_rounds, cancel_requested = n.cancel_requested = 1, waiting_for = NULLIF(n.waiting_for, ''),
    stuck = NULLIF(n.stuck, ''), metadata = NULLIF(n.metadata, ''), parent_id = NULLIF(n.parent_id, ''),
    child_no = n.child_no, on_parent_close = NULLIF(n.on_parent_close, ''), successor = NULLIF(n.successor, '')
FROM each($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[],
    $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::text[],
    $22::text[], $23::text[], $24::text[], $25::bigint[], $26::text[], $27::text[])
    AS n (id, version, queue, priority, state, updated_at, closed_at, last_seq, seen_seq, call_seq,
        signal_count, open_tasks, open_timers, open_children, open_waits, epoch, nonce, crashes, close_rounds,
        cancel_requested, waiting_for, stuck, metadata, parent_id, child_no, on_parent_close, successor)
WHERE e.id = n.id;

-- name: advance
-- Heads that have gone on in the state they were in; no indexed column is written.
UPDATE holdfast_executions AS e SET updated_at = n.updated_at, last_seq = n.last_seq, seen_seq = n.seen_seq,
    call_seq = n.call_seq, signal_count = n.signal_count, open_tasks = n.open_tasks, open_timers = n.open_timers,
    open_children = n.open_children, open_waits = n.open_waits, epoch = n.epoch, nonce = n.nonce,
    close_rounds = n.close_rounds, cancel_requested = n.cancel_requested = 1, waiting_for = NULLIF(n.waiting_for, '')
FROM each($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[])
    AS n (id, updated_at, last_seq, seen_seq, call_seq, signal_count, open_tasks, open_timers, open_children,
        open_waits, epoch, nonce, close_rounds, cancel_requested, waiting_for)
WHERE e.id = n.id;

-- name: open_children
-- The open run of a parent's n-th child.
SELECT e.parent_id, e.child_no, e.id FROM unnest($1::text[], $2::bigint[]) AS wanted (parent_id, child_no)
JOIN holdfast_executions AS e ON e.parent_id = wanted.parent_id AND e.child_no = wanted.child_no
WHERE e.closed_at IS NULL;

-- name: orphans
-- Open children of closed parents, some of them bound to their parent's fate; NULL where a parent has none left.
SELECT p.id, c.id FROM holdfast_executions AS p
LEFT JOIN holdfast_executions AS c ON c.parent_id = p.id AND c.closed_at IS NULL AND c.on_parent_close <> 'abandon'
WHERE p.open_children > 0 AND p.closed_at IS NOT NULL
ORDER BY p.id, c.id LIMIT $1::bigint;

-- name: by_ids
-- Heads with their ready rows. OFFSET 0, here and below, keeps the planner from reading a whole table for a few rows.
SELECT e.id, e.org, e.workflow_id, e.kind, e.version, e.queue, e.priority, e.state, e.created_at, e.updated_at,
    e.closed_at, e.last_seq, e.seen_seq, e.call_seq, e.signal_count, e.open_tasks, e.open_timers, e.open_children,
    e.open_waits, e.epoch, e.nonce, e.crashes, e.close_rounds, e.cancel_requested, e.waiting_for, e.stuck, e.metadata,
    e.parent_id, e.child_no, e.on_parent_close, e.successor, r.since_at, r.not_before_at, r.worker, r.news,
    r.avoid_build
FROM holdfast_executions AS e
LEFT JOIN LATERAL (SELECT * FROM holdfast_ready AS r WHERE r.execution_id = e.id OFFSET 0) AS r ON true
WHERE e.id = ANY ($1::text[]);

-- name: by_workflow_id
-- The newest execution of a workflow id.
SELECT e.id, e.org, e.workflow_id, e.kind, e.version, e.queue, e.priority, e.state, e.created_at, e.updated_at,
    e.closed_at, e.last_seq, e.seen_seq, e.call_seq, e.signal_count, e.open_tasks, e.open_timers, e.open_children,
    e.open_waits, e.epoch, e.nonce, e.crashes, e.close_rounds, e.cancel_requested, e.waiting_for, e.stuck, e.metadata,
    e.parent_id, e.child_no, e.on_parent_close, e.successor, r.since_at, r.not_before_at, r.worker, r.news,
    r.avoid_build
FROM holdfast_workflow_keys AS k
JOIN holdfast_executions AS e ON e.id = k.execution_id
LEFT JOIN holdfast_ready AS r ON r.execution_id = e.id
WHERE k.org = $1::text AND k.workflow_id = $2::text;

-- name: page
-- The heads of a page, newest first. The ids come from branches, one for each way into an index.
SELECT e.id, e.org, e.workflow_id, e.kind, e.version, e.queue, e.priority, e.state, e.created_at, e.updated_at,
    e.closed_at, e.last_seq, e.seen_seq, e.call_seq, e.signal_count, e.open_tasks, e.open_timers, e.open_children,
    e.open_waits, e.epoch, e.nonce, e.crashes, e.close_rounds, e.cancel_requested, e.waiting_for, e.stuck, e.metadata,
    e.parent_id, e.child_no, e.on_parent_close, e.successor, r.since_at, r.not_before_at, r.worker, r.news,
    r.avoid_build
FROM (SELECT b.id COLLATE "C" AS id FROM (/*branches*/) AS b ORDER BY b.id DESC LIMIT {limit}::bigint) AS p
CROSS JOIN LATERAL (SELECT * FROM holdfast_executions AS e WHERE e.id = p.id OFFSET 0) AS e
LEFT JOIN LATERAL (SELECT * FROM holdfast_ready AS r WHERE r.execution_id = p.id OFFSET 0) AS r ON true
ORDER BY e.id DESC;

-- name: page_of_state
-- A branch: executions of one stored state. The collation, here and below, is that of the index on purpose: ids compare
-- the same in both, but the planner can't walk the primary key instead, past all that are in other states and orgs.
(SELECT h.id COLLATE "POSIX" AS id FROM holdfast_executions AS h
WHERE h.org = {org}::text AND h.state = {state}::text
    AND h.id COLLATE "POSIX" >= {from_id}::text AND h.id COLLATE "POSIX" < {before_id}::text /*where*/
ORDER BY h.id COLLATE "POSIX" DESC LIMIT {limit}::bigint);

-- name: page_of_kind
-- A branch: executions of one kind in one stored state.
(SELECT h.id COLLATE "POSIX" AS id FROM holdfast_executions AS h
WHERE h.org = {org}::text AND h.kind = {kind}::text AND h.state = {state}::text
    AND h.id COLLATE "POSIX" >= {from_id}::text AND h.id COLLATE "POSIX" < {before_id}::text /*where*/
ORDER BY h.id COLLATE "POSIX" DESC LIMIT {limit}::bigint);

-- name: page_of_pending
-- A branch: executions that wait for a worker. Ready rows are few, so start from those.
(SELECT r.execution_id COLLATE "POSIX" AS id FROM holdfast_ready AS r
CROSS JOIN LATERAL (SELECT * FROM holdfast_executions AS e WHERE e.id = r.execution_id OFFSET 0) AS h
WHERE r.org = {org}::text AND r.worker IS NULL AND h.state = 'OPEN'
    AND r.execution_id >= {from_id}::text AND r.execution_id < {before_id}::text /*where*/
ORDER BY r.execution_id DESC LIMIT {limit}::bigint);

-- name: page_of_running
-- A branch: executions that a worker holds.
(SELECT r.execution_id COLLATE "POSIX" AS id FROM holdfast_ready AS r
CROSS JOIN LATERAL (SELECT * FROM holdfast_executions AS e WHERE e.id = r.execution_id OFFSET 0) AS h
WHERE r.org = {org}::text AND r.worker IS NOT NULL AND h.state = 'OPEN'
    AND r.execution_id >= {from_id}::text AND r.execution_id < {before_id}::text /*where*/
ORDER BY r.execution_id DESC LIMIT {limit}::bigint);

-- name: page_of_metadata
-- A branch: executions with one tag, in the order of their ids.
(SELECT m.execution_id COLLATE "POSIX" AS id FROM holdfast_metadata AS m
CROSS JOIN LATERAL (SELECT * FROM holdfast_executions AS e WHERE e.id = m.execution_id OFFSET 0) AS h
WHERE m.org = {org}::text AND m.key = {tag_key}::text AND m.value = {tag_value}::text
    AND m.execution_id >= {from_id}::text AND m.execution_id < {before_id}::text /*where*/
ORDER BY m.execution_id DESC LIMIT {limit}::bigint);

-- name: page_of_workflow
-- A branch: executions with one key of the caller's.
(SELECT h.id COLLATE "POSIX" AS id FROM holdfast_executions AS h
WHERE h.org = {org}::text AND h.workflow_id = {workflow_id}::text AND h.workflow_id <> h.id
    AND h.id < {before_id}::text /*where*/
ORDER BY h.id DESC LIMIT {limit}::bigint);

-- name: page_of_id
-- A branch: the execution without a key of the caller's whose id stands in for it.
SELECT h.id COLLATE "POSIX" AS id FROM holdfast_executions AS h
WHERE h.id = {workflow_id}::text AND h.workflow_id = h.id AND h.org = {org}::text
    AND h.id < {before_id}::text /*where*/;

-- name: page_astray
-- A branch: executions of a time whose ids are of another. The condition on both is that of an index.
(SELECT h.id COLLATE "POSIX" AS id FROM holdfast_executions AS h
WHERE h.org = {org}::text AND h.id COLLATE "POSIX" < {cursor}::text
    AND (h.id COLLATE "POSIX" < {from_id}::text OR h.id COLLATE "POSIX" >= {before_id}::text)
    AND (h.id < overlay(lpad(to_hex(greatest(h.created_at / 1000 - 60000, 0)), 12, '0') PLACING '-' FROM 9 FOR 0)
        OR h.id >= overlay(lpad(to_hex(h.created_at / 1000 + 60000), 12, '0') PLACING '-' FROM 9 FOR 0)) /*where*/
ORDER BY h.id COLLATE "POSIX" DESC LIMIT {limit}::bigint);

-- name: where_kind
-- Narrow a branch.
AND h.kind = ANY ({kinds}::text[]);

-- name: where_ready_kind
-- Narrow a branch of ready rows, without a look at their heads.
AND r.kind = ANY ({kinds}::text[]);

-- name: where_queue
-- Narrow a branch.
AND h.queue = {queue}::text;

-- name: where_created_from
-- Narrow a branch.
AND h.created_at >= {created_from}::bigint;

-- name: where_created_before
-- Narrow a branch.
AND h.created_at < {created_before}::bigint;

-- name: where_tagged
-- Narrow a branch to executions that have all of these tags.
AND NOT EXISTS (
    SELECT 1 FROM unnest({tag_keys}::text[], {tag_values}::text[]) AS t (key, value)
    WHERE NOT EXISTS (
        SELECT 1 FROM holdfast_metadata AS m
        WHERE m.org = h.org AND m.key = t.key AND m.value = t.value AND m.execution_id = h.id OFFSET 0)
    OFFSET 0);

-- name: where_waiting
-- Narrow a branch to executions without news.
AND NOT EXISTS (SELECT 1 FROM holdfast_ready AS r WHERE r.execution_id = h.id OFFSET 0);

-- name: where_status
-- Narrow a branch to some stored states and some statuses of open executions.
AND (h.state = ANY ({states}::text[]) OR h.state = 'OPEN' AND coalesce(
    (SELECT CASE WHEN r.worker IS NULL THEN 'PENDING' ELSE 'RUNNING' END
        FROM holdfast_ready AS r WHERE r.execution_id = h.id), 'WAITING') = ANY ({open_statuses}::text[]));

-- name: size_of_state
-- How many ids a branch would walk, counted up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM holdfast_executions AS h
    WHERE h.org = $1::text AND h.state = ANY ($2::text[])
        AND h.id COLLATE "POSIX" >= $3::text AND h.id COLLATE "POSIX" < $4::text
    LIMIT $5::bigint) AS f;

-- name: size_of_kind
-- How many ids a branch would walk, counted up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM holdfast_executions AS h
    WHERE h.org = $1::text AND h.kind = ANY ($6::text[]) AND h.state = ANY ($2::text[])
        AND h.id COLLATE "POSIX" >= $3::text AND h.id COLLATE "POSIX" < $4::text
    LIMIT $5::bigint) AS f;

-- name: count_by_status
-- How many executions of an org are in each stored state, and how many of the OPEN ones have a ready row, without and
-- with a worker. One statement, so that the parts fit together.
SELECT e.state AS place, count(*) FROM holdfast_executions AS e WHERE e.org = $1::text GROUP BY e.state
UNION ALL
SELECT CASE WHEN r.worker IS NULL THEN 'PENDING' ELSE 'RUNNING' END, count(*)
FROM holdfast_ready AS r JOIN holdfast_executions AS e ON e.id = r.execution_id
WHERE r.org = $1::text AND e.state = 'OPEN' GROUP BY r.worker IS NULL;

-- name: end_of_page
-- The last id of a page of executions in one state, the oldest first.
SELECT max(p.id) FROM (
    SELECT e.id FROM holdfast_executions AS e
    WHERE e.org = $1::text AND e.state = $2::text AND e.id COLLATE "POSIX" > $3::text
    ORDER BY e.id COLLATE "POSIX" LIMIT $4::bigint) AS p;

-- name: inconsistent
-- Executions between two ids that have unread events nobody would ever claim, or wait for what has no row. Those with
-- news are left alone: what they last waited for may just have come.
SELECT p.id, p.unread, m.kinds, m.numbers
FROM (
    SELECT e.id, e.last_seq > e.seen_seq AS unread, e.waiting_for FROM holdfast_executions AS e
    WHERE e.org = $1::text AND e.state = $2::text
        AND e.id COLLATE "POSIX" > $3::text AND e.id COLLATE "POSIX" <= $4::text
        AND (e.last_seq > e.seen_seq OR e.waiting_for IS NOT NULL)
        AND NOT EXISTS (SELECT 1 FROM holdfast_ready AS r WHERE r.execution_id = e.id OFFSET 0)
    OFFSET 0) AS p
CROSS JOIN LATERAL (
    SELECT array_agg(w.kind ORDER BY w.place) AS kinds, array_agg(w.number ORDER BY w.place) AS numbers
    FROM (
        SELECT j.place, coalesce((j.wait ->> 'number')::bigint, 0) AS number,
            CASE WHEN j.wait ->> 'kind' IN ('event', 'message', 'broadcast') THEN 'wait'
                ELSE j.wait ->> 'kind' END AS kind
        FROM json_array_elements(p.waiting_for::json) WITH ORDINALITY AS j (wait, place) WHERE NOT p.unread) AS w
    WHERE CASE w.kind
        WHEN 'timer' THEN NOT EXISTS (
            SELECT 1 FROM holdfast_timers AS t WHERE t.execution_id = p.id AND t.timer_no = w.number OFFSET 0)
        WHEN 'task' THEN NOT EXISTS (
            SELECT 1 FROM holdfast_tasks AS t WHERE t.execution_id = p.id AND t.task_no = w.number OFFSET 0)
        WHEN 'wait' THEN NOT EXISTS (
            SELECT 1 FROM holdfast_subscriptions AS s WHERE s.execution_id = p.id AND s.wait_no = w.number OFFSET 0)
        WHEN 'promise' THEN NOT EXISTS (
            SELECT 1 FROM holdfast_promises AS q
            WHERE q.execution_id = p.id AND q.promise_no = w.number
                AND (q.timer_no IS NULL OR EXISTS (
                    SELECT 1 FROM holdfast_timers AS t
                    WHERE t.execution_id = p.id AND t.timer_no = q.timer_no OFFSET 0))
                AND (q.event_key IS NULL OR EXISTS (
                    SELECT 1 FROM holdfast_subscriptions AS s
                    WHERE s.execution_id = p.id AND s.wait_no = -q.promise_no OFFSET 0))
            OFFSET 0)
        ELSE false END) AS m
WHERE p.unread OR m.kinds IS NOT NULL
ORDER BY p.id;

-- name: stuck
-- How many executions of each org are stuck. From org to org by the index: counting all rows would take too long.
WITH RECURSIVE orgs (org) AS (
    (SELECT e.org FROM holdfast_executions AS e ORDER BY e.org LIMIT 1)
    UNION ALL
    SELECT (SELECT e.org FROM holdfast_executions AS e WHERE e.org > orgs.org ORDER BY e.org LIMIT 1)
    FROM orgs WHERE orgs.org IS NOT NULL)
SELECT f.org, (SELECT count(*) FROM holdfast_executions AS e WHERE e.org = f.org AND e.state = 'STUCK')
FROM (SELECT org FROM orgs LIMIT $1::bigint) AS f WHERE f.org IS NOT NULL;
