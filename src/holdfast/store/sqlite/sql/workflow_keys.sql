-- name: upsert
-- Point workflow ids at their newest execution.
INSERT INTO workflow_keys (org, workflow_id, execution_id) VALUES /*row*/(?, ?, ?)/*end*/
ON CONFLICT (org, workflow_id) DO UPDATE SET execution_id = excluded.execution_id;

-- name: by_key
-- The newest execution of each workflow id.
SELECT org, workflow_id, execution_id FROM workflow_keys WHERE (org, workflow_id) IN (VALUES /*row*/(?, ?)/*end*/);
