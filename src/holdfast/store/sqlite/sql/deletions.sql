-- name: executions_of
-- Some of an org's executions.
SELECT id FROM holdfast_executions WHERE org = ? LIMIT ?;

-- name: events_of
-- Some of the events of one execution.
DELETE FROM holdfast_events WHERE execution_id = ?1
    AND seq IN (SELECT seq FROM holdfast_events WHERE execution_id = ?1 LIMIT ?2);

-- name: all_events_of
-- Rows of these executions.
DELETE FROM holdfast_events WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: workflow_keys_of
-- Workflow ids that still point at these executions.
DELETE FROM holdfast_workflow_keys WHERE (org, workflow_id, execution_id) IN (VALUES /*row*/(?, ?, ?)/*end*/);

-- name: closed_page
-- Executions in the order they were closed in, how many events they have, and open children.
SELECT id, closed_at, last_seq, open_children FROM holdfast_executions
WHERE (closed_at, id) > (?, ?) AND closed_at < ? ORDER BY closed_at, id LIMIT ?;

-- name: leave
-- Executions that leave their events behind.
INSERT INTO holdfast_remains (execution_id, org, last_seq) VALUES /*row*/(?, ?, ?)/*end*/;

-- name: remains
-- Executions of an org, or of all, that have left events behind, and up to which number.
SELECT execution_id, last_seq FROM holdfast_remains WHERE ?1 IS NULL OR org = ?1 ORDER BY execution_id LIMIT ?2;

-- name: last_events_of
-- The events of one execution after a number, up to another: there are none above it any more.
DELETE FROM holdfast_events WHERE execution_id = ? AND seq > ? AND seq <= ?;

-- name: shorten
-- Only so many events are left of an execution.
UPDATE holdfast_remains SET last_seq = ?2 WHERE execution_id = ?1;

-- name: cleared
-- Executions of which nothing is left.
DELETE FROM holdfast_remains WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: has_remains
SELECT EXISTS (SELECT 1 FROM holdfast_remains);

-- name: executions
-- Heads, after everything that belongs to them.
DELETE FROM holdfast_executions WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: early_promises
-- Settlements that came before their promises: no execution has them.
DELETE FROM holdfast_promises WHERE (execution_id, name) IN (
    SELECT execution_id, name FROM holdfast_promises WHERE promise_no = 0 AND org = ? LIMIT ?);

-- name: holds_any
-- Whether anything of an org is left, but for its name and the record of acts; tables that it owns itself come behind.
SELECT EXISTS (SELECT 1 FROM holdfast_executions WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_remains WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_promises WHERE promise_no = 0 AND org = ?1);
