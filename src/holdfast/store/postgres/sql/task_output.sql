-- name: insert
-- What tasks have said. A number that is taken is of a task whose row was lost and made again: the newer word counts.
INSERT INTO holdfast_task_output (execution_id, task_no, seq, attempt, at, data)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[])
ON CONFLICT (execution_id, task_no, seq) DO UPDATE SET attempt = excluded.attempt, at = excluded.at,
    data = excluded.data;

-- name: trim
-- The oldest chunks of tasks, up to a number for each.
DELETE FROM holdfast_task_output AS o USING unnest($1::text[], $2::bigint[], $3::bigint[])
    AS n (execution_id, task_no, seq)
WHERE o.execution_id = n.execution_id AND o.task_no = n.task_no AND o.seq <= n.seq;

-- name: page
-- Part of what one task has said, in order.
SELECT o.execution_id, o.task_no, o.seq, o.attempt, o.at, o.data FROM holdfast_task_output AS o
WHERE o.execution_id = $2::text AND o.task_no = $3::bigint AND o.seq > $4::bigint
    AND EXISTS (SELECT 1 FROM holdfast_executions AS e WHERE e.id = $2::text AND e.org = $1::text)
ORDER BY o.seq LIMIT $5::bigint;
