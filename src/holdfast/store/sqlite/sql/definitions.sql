-- name: of_org
-- What is deployed in an org, the version registered last first. The engine's own kinds are left out.
SELECT org, kind, version, build, registered_at FROM holdfast_definitions
WHERE org = ? AND substr(kind, 1, 9) <> 'holdfast.'
ORDER BY kind, registered_at DESC, version LIMIT ?;
