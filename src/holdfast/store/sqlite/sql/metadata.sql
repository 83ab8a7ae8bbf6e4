-- name: insert
-- Tags of new executions, and those that changed.
INSERT INTO holdfast_metadata (org, key, value, execution_id) VALUES /*row*/(?, ?, ?, ?)/*end*/
ON CONFLICT DO NOTHING;

-- name: delete
-- All tags of executions whose tags have changed.
DELETE FROM holdfast_metadata WHERE execution_id IN (VALUES /*row*/(?)/*end*/);
