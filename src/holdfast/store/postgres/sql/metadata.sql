-- name: insert
-- Tags of new executions, and those that changed.
INSERT INTO holdfast_metadata (org, key, value, execution_id)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) ON CONFLICT DO NOTHING;

-- name: delete
-- All tags of executions whose tags have changed.
DELETE FROM holdfast_metadata WHERE execution_id = ANY ($1::text[]);

-- name: sizes
-- How many executions have each of these tags, counted up to a limit.
SELECT (SELECT count(*) FROM (
    SELECT 1 FROM holdfast_metadata AS m WHERE m.org = $1::text AND m.key = t.key AND m.value = t.value
        AND m.execution_id >= $4::text AND m.execution_id < $5::text
    LIMIT $6::bigint) AS f)
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS t (key, value, place) ORDER BY t.place;
