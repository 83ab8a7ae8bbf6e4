-- name: mark
-- The transaction of a writer leaves its number.
INSERT INTO holdfast_writers (id, batch, at) VALUES ($1::text, $2::bigint, $3::bigint)
ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at;

-- name: mark_on
-- The same on one timeline only, for connections that may lead to another server from one transaction to the next: on any
-- other it divides by zero.
INSERT INTO holdfast_writers (id, batch, at)
VALUES ($1::text, $2::bigint / (left(pg_walfile_name(pg_current_wal_lsn()), 8) = $4::text)::integer, $3::bigint)
ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at;

-- name: latest
-- The last transaction of a writer that is known to stand.
SELECT batch FROM holdfast_writers WHERE id = $1::text;

-- name: last
-- The last transaction of a writer that stands. Waits for one that has not ended: an insert also waits for one that is
-- about to make the row, which a reader would not see.
INSERT INTO holdfast_writers (id, batch, at)
VALUES ($1::text, 0, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
ON CONFLICT (id) DO UPDATE SET batch = holdfast_writers.batch
RETURNING batch;

-- name: end
-- End a session of ours that has lost its client: whatever it was about to do is done or undone now.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = $1::integer AND datname = current_database() AND usename = current_user AND backend_start = $2::timestamptz;

-- name: delete
-- A writer has ended in peace.
DELETE FROM holdfast_writers WHERE id = $1::text;

-- name: forget
-- Writers that nobody has heard of for long.
DELETE FROM holdfast_writers WHERE at < $1::bigint;
