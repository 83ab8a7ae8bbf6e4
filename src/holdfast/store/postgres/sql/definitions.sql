-- name: upsert
-- Kinds and versions that a worker has registered; the latest build counts.
INSERT INTO holdfast_definitions (org, kind, version, build, registered_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
ON CONFLICT (org, kind, version) DO UPDATE SET build = excluded.build, registered_at = excluded.registered_at;

-- name: by_kind
-- All versions of these kinds.
SELECT d.org, d.kind, d.version, d.build, d.registered_at FROM unnest($1::text[], $2::text[]) AS wanted (org, kind)
JOIN holdfast_definitions AS d ON d.org = wanted.org AND d.kind = wanted.kind
ORDER BY d.org, d.kind, d.version;

-- name: of_org
-- What is deployed in an org, the version registered last first. The engine's own kinds are left out.
SELECT org, kind, version, build, registered_at FROM holdfast_definitions
WHERE org = $1::text AND NOT starts_with(kind, 'holdfast.')
ORDER BY kind, registered_at DESC, version LIMIT $2::bigint;
