-- name: insert
-- What tasks have said. A number that is taken is of a task whose row was lost and made again: the newer word counts.
INSERT INTO holdfast_task_output (execution_id, task_no, seq, attempt, at, data)
VALUES /*row*/(?, ?, ?, ?, ?, ?)/*end*/
ON CONFLICT (execution_id, task_no, seq) DO UPDATE SET attempt = excluded.attempt, at = excluded.at,
    data = excluded.data;

-- name: trim
-- The oldest chunks of a task, up to a number.
DELETE FROM holdfast_task_output WHERE execution_id = ? AND task_no = ? AND seq <= ?;

-- name: page
-- Part of what one task has said, in order.
SELECT execution_id, task_no, seq, attempt, at, CAST(data AS BLOB) FROM holdfast_task_output
WHERE execution_id = ? AND task_no = ? AND seq > ?
AND EXISTS (SELECT 1 FROM holdfast_executions AS e WHERE e.id = execution_id AND e.org = ?)
ORDER BY seq LIMIT ?;
