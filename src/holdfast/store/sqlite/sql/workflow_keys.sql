-- name: upsert
-- Point workflow ids at their newest execution.
INSERT INTO holdfast_workflow_keys (org, workflow_id, execution_id) VALUES /*row*/(?, ?, ?)/*end*/
ON CONFLICT (org, workflow_id) DO UPDATE SET execution_id = excluded.execution_id;

-- name: by_key
-- The newest execution of each workflow id.
SELECT k.org, k.workflow_id, k.execution_id
FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_workflow_keys AS k ON k.org = wanted.column1 AND k.workflow_id = wanted.column2;
