-- name: put
-- Point workflow ids at their newest execution: new ids, and those that point at an execution whose head is locked. How
-- many that were.
WITH put AS (
    INSERT INTO holdfast_workflow_keys AS k (org, workflow_id, execution_id)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
    ON CONFLICT (org, workflow_id) DO UPDATE SET execution_id = excluded.execution_id
    WHERE k.execution_id = ANY ($4::text[]) RETURNING 1)
SELECT count(*) FROM put;

-- name: by_key
-- The newest execution of each workflow id.
SELECT k.org, k.workflow_id, k.execution_id FROM unnest($1::text[], $2::text[]) AS wanted (org, workflow_id)
JOIN holdfast_workflow_keys AS k ON k.org = wanted.org AND k.workflow_id = wanted.workflow_id;
