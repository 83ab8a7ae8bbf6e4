-- name: by_hash
-- The key of a hash, also of the one before its last rotation, with its org.
SELECT o.slug, o.created_at, o.closed_at, o.audit_seq, o.audit_digest, k.id, k.org, k.name, k.role, k.hash, k.hint, k.created_at, k.created_by, k.expires_at, k.revoked_at,
    k.last_used_at, k.rotated_at, k.old_hash, k.old_until_at
FROM holdfast_api_keys AS k JOIN holdfast_orgs AS o ON o.slug = k.org
WHERE k.hash = $1::text OR k.old_hash = $1::text;
