-- name: insert
-- New heads; an id that exists already is an error.
INSERT INTO holdfast_executions (id, org, workflow_id, kind, version, queue, priority, state, created_at, updated_at, closed_at,
    last_seq, seen_seq, call_seq, signal_count, open_tasks, open_timers, open_children, open_waits, epoch, nonce,
    crashes, close_rounds, cancel_requested, waiting_for, stuck, metadata, parent_id, child_no, on_parent_close, successor)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    NULLIF(?, ''), NULLIF(?, ''), NULLIF(?, ''), NULLIF(?, ''), ?, NULLIF(?, ''), NULLIF(?, ''))/*end*/;

-- name: update
-- Heads that changed. An upsert, because a statement over many rows releases the GIL once, not once per row.
INSERT INTO holdfast_executions (id, org, workflow_id, kind, version, queue, priority, state, created_at, updated_at, closed_at,
    last_seq, seen_seq, call_seq, signal_count, open_tasks, open_timers, open_children, open_waits, epoch, nonce,
    crashes, close_rounds, cancel_requested, waiting_for, stuck, metadata, parent_id, child_no, on_parent_close, successor)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    NULLIF(?, ''), NULLIF(?, ''), NULLIF(?, ''), NULLIF(?, ''), ?, NULLIF(?, ''), NULLIF(?, ''))/*end*/
ON CONFLICT (id) DO UPDATE SET version = excluded.version, queue = excluded.queue, priority = excluded.priority,
    state = excluded.state, updated_at = excluded.updated_at, closed_at = excluded.closed_at,
    last_seq = excluded.last_seq, seen_seq = excluded.seen_seq, call_seq = excluded.call_seq,
    signal_count = excluded.signal_count, open_tasks = excluded.open_tasks, open_timers = excluded.open_timers,
    open_children = excluded.open_children, open_waits = excluded.open_waits, epoch = excluded.epoch,
    nonce = excluded.nonce, crashes = excluded.crashes, close_rounds = excluded.close_rounds,
    cancel_requested = excluded.cancel_requested, waiting_for = excluded.waiting_for, stuck = excluded.stuck,
    metadata = excluded.metadata, parent_id = excluded.parent_id, child_no = excluded.child_no,
    on_parent_close = excluded.on_parent_close, successor = excluded.successor;

-- name: advance
-- Heads that have gone on in the state they were in. The constants stand for columns that never change or did not; no
-- indexed column is written.
INSERT INTO holdfast_executions (id, org, workflow_id, kind, version, queue, priority, state, created_at, updated_at,
    last_seq, seen_seq, call_seq, signal_count, open_tasks, open_timers, open_children, open_waits, epoch, nonce,
    crashes, close_rounds, cancel_requested, waiting_for)
VALUES /*row*/(?, '-', '-', '-', '-', '-', 0, 'OPEN', 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, NULLIF(?, ''))/*end*/
ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at, last_seq = excluded.last_seq,
    seen_seq = excluded.seen_seq, call_seq = excluded.call_seq, signal_count = excluded.signal_count,
    open_tasks = excluded.open_tasks, open_timers = excluded.open_timers, open_children = excluded.open_children,
    open_waits = excluded.open_waits, epoch = excluded.epoch, nonce = excluded.nonce, close_rounds = excluded.close_rounds, cancel_requested = excluded.cancel_requested,
    waiting_for = excluded.waiting_for;

-- name: by_id
-- Heads with their ready rows.
SELECT * FROM holdfast_heads WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: open_children
-- The open run of a parent's n-th child.
SELECT e.id FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_executions AS e ON e.parent_id = wanted.column1 AND e.child_no = wanted.column2
WHERE e.closed_at IS NULL;

-- name: orphans
-- Open children of closed parents, some of them bound to their parent's fate; NULL where a parent has none left.
SELECT p.id, c.id FROM holdfast_executions AS p
LEFT JOIN holdfast_executions AS c ON c.parent_id = p.id AND c.closed_at IS NULL AND c.on_parent_close <> 'abandon'
WHERE p.open_children > 0 AND p.closed_at IS NOT NULL
ORDER BY p.id, c.id LIMIT ?;

-- name: by_workflow_id
-- The newest execution of a workflow id.
SELECT h.* FROM holdfast_workflow_keys AS k CROSS JOIN holdfast_heads AS h ON h.id = k.execution_id
WHERE k.org = ? AND k.workflow_id = ?;

-- name: page_of_state
-- One branch of a page: the executions of one stored state.
SELECT h.* FROM holdfast_heads AS h WHERE h.org = ? AND h.state = ? AND h.id < ?;

-- name: page_of_kind
-- One branch of a page: the executions of one kind.
SELECT h.* FROM holdfast_heads AS h WHERE h.org = ? AND h.kind = ? AND h.id < ?;

-- name: page_of_ready
-- One branch of a page: the executions of one stored state with a ready row. They are few, so start from those rows, in
-- the order of their ids (the plus keeps SQLite from the claiming index, which would mean sorting them).
SELECT r.execution_id AS id, h.org, h.workflow_id, h.kind, h.version, h.queue, h.priority, h.state, h.created_at,
    h.updated_at, h.closed_at, h.last_seq, h.seen_seq, h.call_seq, h.signal_count, h.open_tasks, h.open_timers,
    h.open_children, h.open_waits, h.epoch, h.nonce, h.crashes, h.close_rounds, h.cancel_requested, h.waiting_for, h.stuck,
    h.metadata, h.parent_id, h.child_no, h.on_parent_close, h.successor,
    r.since_at, r.not_before_at, r.worker, r.news, r.avoid_build
FROM holdfast_ready AS r CROSS JOIN holdfast_executions AS h ON h.id = r.execution_id
WHERE +r.org = ? AND h.state = ? AND r.execution_id < ?;

-- name: page_of_workflow
-- One branch of a page: the executions with one key of the caller's.
SELECT h.* FROM holdfast_heads AS h WHERE h.org = ? AND h.workflow_id = ? AND h.id < ? AND h.workflow_id <> h.id;

-- name: page_of_id
-- One branch of a page: the execution without a key of the caller's whose id stands in for it.
SELECT h.* FROM holdfast_heads AS h WHERE h.org = ? AND h.id = ? AND h.id < ? AND h.workflow_id = h.id;

-- name: page_of_metadata
-- One branch of a page: the executions with one tag, in the order of their ids.
SELECT m.execution_id AS id, h.org, h.workflow_id, h.kind, h.version, h.queue, h.priority, h.state, h.created_at,
    h.updated_at, h.closed_at, h.last_seq, h.seen_seq, h.call_seq, h.signal_count, h.open_tasks, h.open_timers,
    h.open_children, h.open_waits, h.epoch, h.nonce, h.crashes, h.close_rounds, h.cancel_requested, h.waiting_for, h.stuck,
    h.metadata, h.parent_id, h.child_no, h.on_parent_close, h.successor,
    r.since_at, r.not_before_at, r.worker, r.news, r.avoid_build
FROM holdfast_metadata AS m CROSS JOIN holdfast_executions AS h ON h.id = m.execution_id
LEFT JOIN holdfast_ready AS r ON r.execution_id = h.id
WHERE m.org = ? AND m.key = ? AND m.value = ? AND m.execution_id < ?;

-- name: page_astray
-- One branch of a page: executions of a time whose ids are of another. The condition on both is that of an index.
SELECT h.* FROM holdfast_heads AS h WHERE h.id IN (
    SELECT e.id FROM holdfast_executions AS e INDEXED BY holdfast_executions_astray
    WHERE e.org = ? AND e.id < ? AND (e.id < ? OR e.id >= ?)
        AND (replace(substr(e.id, 1, 13), '-', '') < printf('%012x', max(e.created_at / 1000 - 60000, 0))
            OR replace(substr(e.id, 1, 13), '-', '') >= printf('%012x', e.created_at / 1000 + 60000)));

-- name: page_order
-- The end of a page, after its branches.
ORDER BY id DESC LIMIT ?;

-- name: where_state
-- Narrow a branch.
AND h.state = ?;

-- name: where_kind
-- Narrow a branch.
AND h.kind = ?;

-- name: where_queue
-- Narrow a branch.
AND h.queue = ?;

-- name: where_id_from
-- Narrow a branch.
AND h.id >= ?;

-- name: where_created_from
-- Narrow a branch.
AND h.created_at >= ?;

-- name: where_created_before
-- Narrow a branch.
AND h.created_at < ?;

-- name: where_tagged
-- Narrow a branch to executions with one more tag.
AND EXISTS (SELECT 1 FROM holdfast_metadata AS t
    WHERE t.org = h.org AND t.key = ? AND t.value = ? AND t.execution_id = h.id);

-- name: where_pending
-- Narrow a branch to executions that wait for a worker.
AND since_at IS NOT NULL AND worker IS NULL;

-- name: where_running
-- Narrow a branch to executions that a worker holds.
AND worker IS NOT NULL;

-- name: where_waiting
-- Narrow a branch to executions without news.
AND since_at IS NULL;

-- name: count_by_state
-- How many executions of an org are in each stored state.
SELECT state, count(*) FROM holdfast_executions WHERE org = ? GROUP BY state;

-- name: count_ready
-- How many OPEN executions of an org have a ready row, without and with a worker.
SELECT count(*) FILTER (WHERE r.worker IS NULL), count(*) FILTER (WHERE r.worker IS NOT NULL)
FROM holdfast_ready AS r CROSS JOIN holdfast_executions AS e ON e.id = r.execution_id
WHERE r.org = ? AND e.state = 'OPEN';

-- name: unread_without_ready
-- Open executions with unread events that nobody would ever claim.
SELECT e.id FROM holdfast_executions AS e
WHERE e.org = ? AND e.state IN ('OPEN', 'STUCK') AND e.last_seq > e.seen_seq
    AND NOT EXISTS (SELECT 1 FROM holdfast_ready AS r WHERE r.execution_id = e.id)
ORDER BY e.id LIMIT ?;

-- name: waiting_for_missing
-- What executions at rest wait for, although it has no row. Executions with news are left alone: what they last waited
-- for may just have come.
SELECT e.id, CASE WHEN w.value ->> 'kind' IN ('event', 'message', 'broadcast') THEN 'wait' ELSE w.value ->> 'kind' END,
    w.value ->> 'number'
FROM holdfast_executions AS e CROSS JOIN json_each(e.waiting_for) AS w
WHERE e.org = ? AND e.state IN ('OPEN', 'STUCK') AND e.last_seq = e.seen_seq
    AND NOT EXISTS (SELECT 1 FROM holdfast_ready AS r WHERE r.execution_id = e.id)
    AND (
        w.value ->> 'kind' = 'timer' AND NOT EXISTS (
            SELECT 1 FROM holdfast_timers AS t WHERE t.execution_id = e.id AND t.timer_no = w.value ->> 'number')
        OR w.value ->> 'kind' = 'task' AND NOT EXISTS (
            SELECT 1 FROM holdfast_tasks AS t WHERE t.execution_id = e.id AND t.task_no = w.value ->> 'number')
        OR w.value ->> 'kind' IN ('event', 'message', 'broadcast') AND NOT EXISTS (
            SELECT 1 FROM holdfast_subscriptions AS s
            WHERE s.execution_id = e.id AND s.wait_no = w.value ->> 'number')
        OR w.value ->> 'kind' = 'promise' AND NOT EXISTS (
            SELECT 1 FROM holdfast_promises AS p
            WHERE p.execution_id = e.id AND p.promise_no = w.value ->> 'number'
                AND (p.timer_no IS NULL OR EXISTS (
                    SELECT 1 FROM holdfast_timers AS t WHERE t.execution_id = e.id AND t.timer_no = p.timer_no))
                AND (p.event_key IS NULL OR EXISTS (
                    SELECT 1 FROM holdfast_subscriptions AS s
                    WHERE s.execution_id = e.id AND s.wait_no = -p.promise_no)))
    )
ORDER BY e.id;

-- name: stuck
-- How many executions of each org are stuck. From org to org by the index: counting all rows would take too long.
WITH RECURSIVE orgs (org) AS (
    SELECT min(org) FROM holdfast_executions
    UNION ALL
    SELECT (SELECT min(e.org) FROM holdfast_executions AS e WHERE e.org > orgs.org) FROM orgs WHERE orgs.org IS NOT NULL
    LIMIT ?)
SELECT org, (SELECT count(*) FROM holdfast_executions AS e WHERE e.org = orgs.org AND e.state = 'STUCK')
FROM orgs WHERE org IS NOT NULL;
