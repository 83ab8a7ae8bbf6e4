-- name: expired
-- Keys that nobody will ask for again: their time is over, and so is that of what they have started.
SELECT r.org, r.request_id FROM holdfast_requests AS r WHERE r.expires_at <= $1::bigint AND NOT EXISTS (
    SELECT 1 FROM holdfast_executions AS e
    WHERE e.id = r.execution_id AND (e.closed_at IS NULL OR e.closed_at + r.ttl > $1::bigint))
ORDER BY r.expires_at LIMIT $2::bigint FOR UPDATE OF r SKIP LOCKED;
