-- name: executions_of
-- Some of an org's executions, that nobody else is at work on.
SELECT id FROM holdfast_executions WHERE org = $1::text LIMIT $2::bigint FOR UPDATE SKIP LOCKED;

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

-- name: early_promises
-- Settlements that came before their promises: no execution has them.
DELETE FROM holdfast_promises WHERE (execution_id, name) IN (
    SELECT execution_id, name FROM holdfast_promises WHERE promise_no = 0 AND org = $1::text LIMIT $2::bigint);

-- name: holds_any
-- Whether anything of an org is left, but for its name and the record of acts; tables that it owns itself come behind.
SELECT EXISTS (SELECT 1 FROM holdfast_executions WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_remains WHERE org = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast_promises WHERE promise_no = 0 AND org = $1::text);
