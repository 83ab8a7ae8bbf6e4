-- name: upsert
-- Kinds and versions that a worker has registered; the latest build counts.
INSERT INTO holdfast_definitions (org, kind, version, build, registered_at) VALUES /*row*/(?, ?, ?, ?, ?)/*end*/
ON CONFLICT (org, kind, version) DO UPDATE SET build = excluded.build, registered_at = excluded.registered_at;

-- name: by_kind
-- All versions of these kinds.
SELECT org, kind, version, build, registered_at
FROM (VALUES /*row*/(?, ?)/*end*/) AS wanted
CROSS JOIN holdfast_definitions ON org = wanted.column1 AND kind = wanted.column2
ORDER BY org, kind, version;

-- name: of_org
-- What is deployed in an org, the version registered last first. The engine's own kinds are left out.
SELECT org, kind, version, build, registered_at FROM holdfast_definitions
WHERE org = ? AND substr(kind, 1, 9) <> 'holdfast.'
ORDER BY kind, registered_at DESC, version LIMIT ?;
