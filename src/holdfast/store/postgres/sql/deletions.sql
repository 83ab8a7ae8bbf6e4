-- name: executions_of
-- Some of an org's executions, that nobody else is at work on.
SELECT id FROM holdfast_executions WHERE org = $1::text LIMIT $2::bigint FOR UPDATE SKIP LOCKED;

-- name: ready
-- Rows of these executions.
DELETE FROM holdfast_ready WHERE execution_id = ANY ($1::text[]);

-- name: tasks
-- Rows of these executions.
DELETE FROM holdfast_tasks WHERE execution_id = ANY ($1::text[]);

-- name: task_output
-- Rows of these executions.
DELETE FROM holdfast_task_output WHERE execution_id = ANY ($1::text[]);

-- name: timers
-- Rows of these executions.
DELETE FROM holdfast_timers WHERE execution_id = ANY ($1::text[]);

-- name: subscriptions
-- Rows of these executions.
DELETE FROM holdfast_subscriptions WHERE execution_id = ANY ($1::text[]);

-- name: promises
-- Rows of these executions.
DELETE FROM holdfast_promises WHERE execution_id = ANY ($1::text[]);

-- name: tokens
-- Rows of these executions.
DELETE FROM holdfast_tokens WHERE execution_id = ANY ($1::text[]);

-- name: dead_letters
-- Rows of these executions.
DELETE FROM holdfast_dead_letters WHERE execution_id = ANY ($1::text[]);

-- name: metadata
-- Rows of these executions.
DELETE FROM holdfast_metadata WHERE execution_id = ANY ($1::text[]);

-- name: snapshots
-- Rows of these executions.
DELETE FROM holdfast_snapshots WHERE execution_id = ANY ($1::text[]);

-- name: events_of
-- Some of the events of one execution; how many.
WITH gone AS (
    DELETE FROM holdfast_events WHERE execution_id = $1::text
        AND seq IN (SELECT seq FROM holdfast_events WHERE execution_id = $1::text LIMIT $2::bigint) RETURNING 1)
SELECT count(*) FROM gone;

-- name: all_events_of
-- Rows of these executions.
DELETE FROM holdfast_events WHERE execution_id = ANY ($1::text[]);

-- name: workflow_keys_of
-- Workflow ids that still point at these executions.
DELETE FROM holdfast_workflow_keys AS k USING unnest($1::text[], $2::text[], $3::text[]) AS n (org, workflow_id, id)
WHERE k.org = n.org AND k.workflow_id = n.workflow_id AND k.execution_id = n.id;

-- name: closed_page
-- Executions in the order they were closed in, how many events they have, and open children.
SELECT id, closed_at, last_seq, open_children FROM holdfast_executions
WHERE closed_at >= $1::bigint AND closed_at < $3::bigint AND (closed_at, id) > ($1::bigint, $2::text)
ORDER BY closed_at, id LIMIT $4::bigint;

-- name: leave
-- Executions that leave their events behind.
INSERT INTO holdfast_remains (execution_id, org, last_seq) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]);

-- name: remains
-- Executions of an org, or of all, that have left events behind, and up to which number; not those somebody else is at.
SELECT execution_id, last_seq FROM holdfast_remains WHERE $1::text IS NULL OR org = $1::text
ORDER BY execution_id LIMIT $2::bigint FOR UPDATE SKIP LOCKED;

-- name: last_events_of
-- The events of one execution after a number, up to another: there are none above it any more.
DELETE FROM holdfast_events WHERE execution_id = $1::text AND seq > $2::bigint AND seq <= $3::bigint;

-- name: shorten
-- Only so many events are left of an execution.
UPDATE holdfast_remains SET last_seq = $2::bigint WHERE execution_id = $1::text;

-- name: cleared
-- Executions of which nothing is left.
DELETE FROM holdfast_remains WHERE execution_id = ANY ($1::text[]);

-- name: has_remains
SELECT EXISTS (SELECT 1 FROM holdfast_remains);

-- name: executions
-- Heads, after everything that belongs to them.
DELETE FROM holdfast_executions WHERE id = ANY ($1::text[]);

-- name: workflow_keys
-- Some of an org's rows.
DELETE FROM holdfast_workflow_keys WHERE (org, workflow_id) IN (
    SELECT org, workflow_id FROM holdfast_workflow_keys WHERE org = $1::text LIMIT $2::bigint);

-- name: definitions
-- Some of an org's rows.
DELETE FROM holdfast_definitions WHERE (org, kind, version) IN (
    SELECT org, kind, version FROM holdfast_definitions WHERE org = $1::text LIMIT $2::bigint);

-- name: requests
-- Some of an org's rows.
DELETE FROM holdfast_requests WHERE (org, request_id) IN (
    SELECT org, request_id FROM holdfast_requests WHERE org = $1::text LIMIT $2::bigint);

-- name: published
-- Some of an org's rows.
DELETE FROM holdfast_published WHERE id IN (
    SELECT id FROM holdfast_published WHERE org = $1::text LIMIT $2::bigint);

-- name: event_keys
-- Some of an org's rows.
DELETE FROM holdfast_event_keys WHERE (org, key) IN (
    SELECT org, key FROM holdfast_event_keys WHERE org = $1::text LIMIT $2::bigint);

-- name: dead_events
-- Some of an org's rows.
DELETE FROM holdfast_dead_events WHERE id IN (
    SELECT id FROM holdfast_dead_events WHERE org = $1::text LIMIT $2::bigint);

-- name: deliveries
-- Some of an org's rows.
DELETE FROM holdfast_deliveries WHERE id IN (
    SELECT id FROM holdfast_deliveries WHERE org = $1::text LIMIT $2::bigint);

-- name: event_triggers
-- Some of an org's rows.
DELETE FROM holdfast_event_triggers WHERE (org, key, kind) IN (
    SELECT org, key, kind FROM holdfast_event_triggers WHERE org = $1::text LIMIT $2::bigint);

-- name: workers
-- Some of an org's rows.
DELETE FROM holdfast_workers WHERE id IN (
    SELECT id FROM holdfast_workers WHERE org = $1::text LIMIT $2::bigint);

-- name: api_keys
-- Some of an org's rows.
DELETE FROM holdfast_api_keys WHERE id IN (
    SELECT id FROM holdfast_api_keys WHERE org = $1::text LIMIT $2::bigint);

-- name: pauses
-- Some of an org's rows.
DELETE FROM holdfast_pauses WHERE (org, what, name) IN (
    SELECT org, what, name FROM holdfast_pauses WHERE org = $1::text LIMIT $2::bigint);

-- name: early_promises
-- Settlements that came before their promises: no execution has them.
DELETE FROM holdfast_promises WHERE (execution_id, name) IN (
    SELECT execution_id, name FROM holdfast_promises WHERE promise_no = 0 AND org = $1::text LIMIT $2::bigint);

-- name: holds_any
-- Whether anything of an org is left, but for its name and the record of acts.
SELECT EXISTS (SELECT 1 FROM holdfast_executions WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_workflow_keys WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_definitions WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_requests WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_published WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_event_keys WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_dead_events WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_deliveries WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_event_triggers WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_workers WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_api_keys WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_pauses WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_remains WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_promises WHERE promise_no = 0 AND org = $1::text);

-- name: begin
-- Orgs that are to be removed.
INSERT INTO holdfast_deletions (org, since_at) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (org) DO NOTHING;

-- name: finish
-- Orgs of which nothing is left.
DELETE FROM holdfast_deletions WHERE org = ANY ($1::text[]);

-- name: all
SELECT org, since_at FROM holdfast_deletions ORDER BY org;
