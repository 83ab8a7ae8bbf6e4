-- name: executions_of
-- Some of an org's executions.
SELECT id FROM holdfast_executions WHERE org = ? LIMIT ?;

-- name: ready
-- Rows of these executions.
DELETE FROM holdfast_ready WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: tasks
-- Rows of these executions.
DELETE FROM holdfast_tasks WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: task_output
-- Rows of these executions.
DELETE FROM holdfast_task_output WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: timers
-- Rows of these executions.
DELETE FROM holdfast_timers WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: subscriptions
-- Rows of these executions.
DELETE FROM holdfast_subscriptions WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: promises
-- Rows of these executions.
DELETE FROM holdfast_promises WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: tokens
-- Rows of these executions.
DELETE FROM holdfast_tokens WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: dead_letters
-- Rows of these executions.
DELETE FROM holdfast_dead_letters WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: metadata
-- Rows of these executions.
DELETE FROM holdfast_metadata WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

-- name: snapshots
-- Rows of these executions.
DELETE FROM holdfast_snapshots WHERE execution_id IN (VALUES /*row*/(?)/*end*/);

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

-- name: workflow_keys
-- Some of an org's rows.
DELETE FROM holdfast_workflow_keys WHERE (org, workflow_id) IN (SELECT org, workflow_id FROM holdfast_workflow_keys WHERE org = ? LIMIT ?);

-- name: definitions
-- Some of an org's rows.
DELETE FROM holdfast_definitions WHERE (org, kind, version) IN (SELECT org, kind, version FROM holdfast_definitions WHERE org = ? LIMIT ?);

-- name: requests
-- Some of an org's rows.
DELETE FROM holdfast_requests WHERE (org, request_id) IN (SELECT org, request_id FROM holdfast_requests WHERE org = ? LIMIT ?);

-- name: published
-- Some of an org's rows.
DELETE FROM holdfast_published WHERE id IN (SELECT id FROM holdfast_published WHERE org = ? LIMIT ?);

-- name: event_keys
-- Some of an org's rows.
DELETE FROM holdfast_event_keys WHERE (org, key) IN (SELECT org, key FROM holdfast_event_keys WHERE org = ? LIMIT ?);

-- name: dead_events
-- Some of an org's rows.
DELETE FROM holdfast_dead_events WHERE id IN (SELECT id FROM holdfast_dead_events WHERE org = ? LIMIT ?);

-- name: deliveries
-- Some of an org's rows.
DELETE FROM holdfast_deliveries WHERE id IN (SELECT id FROM holdfast_deliveries WHERE org = ? LIMIT ?);

-- name: event_triggers
-- Some of an org's rows.
DELETE FROM holdfast_event_triggers WHERE (org, key, kind) IN (SELECT org, key, kind FROM holdfast_event_triggers WHERE org = ? LIMIT ?);

-- name: workers
-- Some of an org's rows.
DELETE FROM holdfast_workers WHERE id IN (SELECT id FROM holdfast_workers WHERE org = ? LIMIT ?);

-- name: api_keys
-- Some of an org's rows.
DELETE FROM holdfast_api_keys WHERE id IN (SELECT id FROM holdfast_api_keys WHERE org = ? LIMIT ?);

-- name: pauses
-- Some of an org's rows.
DELETE FROM holdfast_pauses WHERE (org, what, name) IN (SELECT org, what, name FROM holdfast_pauses WHERE org = ? LIMIT ?);

-- name: early_promises
-- Settlements that came before their promises: no execution has them.
DELETE FROM holdfast_promises WHERE (execution_id, name) IN (
    SELECT execution_id, name FROM holdfast_promises WHERE promise_no = 0 AND org = ? LIMIT ?);

-- name: holds_any
-- Whether anything of an org is left, but for its name and the record of acts.
SELECT EXISTS (SELECT 1 FROM holdfast_executions WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_workflow_keys WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_definitions WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_requests WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_published WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_event_keys WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_dead_events WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_deliveries WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_event_triggers WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_workers WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_api_keys WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_pauses WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_remains WHERE org = ?1)
    OR EXISTS (SELECT 1 FROM holdfast_promises WHERE promise_no = 0 AND org = ?1);

-- name: begin
-- Orgs that are to be removed.
INSERT INTO holdfast_deletions (org, since_at) VALUES /*row*/(?, ?)/*end*/ ON CONFLICT (org) DO NOTHING;

-- name: finish
-- Orgs of which nothing is left.
DELETE FROM holdfast_deletions WHERE org IN (VALUES /*row*/(?)/*end*/);

-- name: all
SELECT org, since_at FROM holdfast_deletions ORDER BY org;
