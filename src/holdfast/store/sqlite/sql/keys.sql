-- name: upsert_orgs
-- Orgs that are new, or have got another end of their record.
INSERT INTO holdfast_orgs (slug, created_at, closed_at, audit_seq, audit_digest) VALUES /*row*/(?, ?, ?, ?, ?)/*end*/
ON CONFLICT (slug) DO UPDATE SET closed_at = excluded.closed_at, audit_seq = excluded.audit_seq,
    audit_digest = excluded.audit_digest;

-- name: orgs_by_slug
SELECT slug, created_at, closed_at, audit_seq, audit_digest FROM holdfast_orgs WHERE slug IN (VALUES /*row*/(?)/*end*/);

-- name: orgs_after
SELECT slug, created_at, closed_at, audit_seq, audit_digest FROM holdfast_orgs WHERE slug > ? ORDER BY slug LIMIT ?;

-- name: upsert
-- Keys that are new, were rotated, revoked or used.
INSERT INTO holdfast_api_keys (id, org, name, role, hash, hint, created_at, created_by, expires_at, revoked_at, last_used_at, rotated_at,
    old_hash, old_until_at)
VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/
ON CONFLICT (id) DO UPDATE SET name = excluded.name, role = excluded.role, hash = excluded.hash, hint = excluded.hint,
    expires_at = excluded.expires_at, revoked_at = excluded.revoked_at, last_used_at = excluded.last_used_at,
    rotated_at = excluded.rotated_at, old_hash = excluded.old_hash, old_until_at = excluded.old_until_at;

-- name: by_id
SELECT id, org, name, role, hash, hint, created_at, created_by, expires_at, revoked_at, last_used_at, rotated_at,
    old_hash, old_until_at
FROM holdfast_api_keys WHERE id IN (VALUES /*row*/(?)/*end*/);

-- name: by_hash
-- The key of a hash, also of the one before its last rotation, with its org.
SELECT o.slug, o.created_at, o.closed_at, o.audit_seq, o.audit_digest, k.id, k.org, k.name, k.role, k.hash, k.hint, k.created_at, k.created_by, k.expires_at, k.revoked_at,
    k.last_used_at, k.rotated_at, k.old_hash, k.old_until_at
FROM holdfast_api_keys AS k CROSS JOIN holdfast_orgs AS o ON o.slug = k.org
WHERE k.hash = ? OR k.old_hash = ?;

-- name: of_org
-- The newest keys of an org with ids below one.
SELECT id, org, name, role, hash, hint, created_at, created_by, expires_at, revoked_at, last_used_at, rotated_at,
    old_hash, old_until_at
FROM holdfast_api_keys WHERE org = ? AND id < ? ORDER BY id DESC LIMIT ?;

-- name: any
SELECT EXISTS (SELECT 1 FROM holdfast_api_keys);

-- name: insert_audit
INSERT INTO holdfast_audit (org, seq, at, actor, action, subject, address, outcome, detail, digest) VALUES /*row*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/;

-- name: audit_of_org
-- The newest acts in an org with numbers below one.
SELECT org, seq, at, actor, action, subject, address, outcome, detail, digest FROM holdfast_audit
WHERE org = ? AND seq < ? ORDER BY seq DESC LIMIT ?;
