-- name: insert_orgs
-- Orgs that were not there before: how many of the names were free.
WITH made AS (
    INSERT INTO holdfast_orgs (slug, created_at, closed_at, audit_seq, audit_digest)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
    ON CONFLICT (slug) DO NOTHING RETURNING 1)
SELECT count(*) FROM made;

-- name: update_orgs
-- Orgs that have got another end of their record, or were closed.
UPDATE holdfast_orgs AS o SET closed_at = n.closed_at, audit_seq = n.audit_seq, audit_digest = n.audit_digest
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
    AS n (slug, created_at, closed_at, audit_seq, audit_digest)
WHERE o.slug = n.slug;

-- name: lock_orgs
-- Orgs by name; whoever wants to add to their record waits.
SELECT slug, created_at, closed_at, audit_seq, audit_digest FROM holdfast_orgs WHERE slug = ANY ($1::text[])
ORDER BY slug FOR NO KEY UPDATE;

-- name: org
SELECT slug, created_at, closed_at, audit_seq, audit_digest FROM holdfast_orgs WHERE slug = $1::text;

-- name: orgs_after
SELECT slug, created_at, closed_at, audit_seq, audit_digest FROM holdfast_orgs WHERE slug > $1::text
ORDER BY slug LIMIT $2::bigint;

-- name: upsert
-- Keys that are new, were rotated, revoked or used.
INSERT INTO holdfast_api_keys (id, org, name, role, hash, hint, created_at, created_by, expires_at, revoked_at, last_used_at, rotated_at,
    old_hash, old_until_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::bigint[])
ON CONFLICT (id) DO UPDATE SET name = excluded.name, role = excluded.role, hash = excluded.hash, hint = excluded.hint,
    expires_at = excluded.expires_at, revoked_at = excluded.revoked_at, last_used_at = excluded.last_used_at,
    rotated_at = excluded.rotated_at, old_hash = excluded.old_hash, old_until_at = excluded.old_until_at;

-- name: lock
-- Keys by id; whoever wants to change one waits.
SELECT id, org, name, role, hash, hint, created_at, created_by, expires_at, revoked_at, last_used_at, rotated_at,
    old_hash, old_until_at
FROM holdfast_api_keys WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE;

-- name: by_id
SELECT id, org, name, role, hash, hint, created_at, created_by, expires_at, revoked_at, last_used_at, rotated_at,
    old_hash, old_until_at
FROM holdfast_api_keys WHERE id = $2::text AND org = $1::text;

-- name: by_hash
-- The key of a hash, also of the one before its last rotation, with its org.
SELECT o.slug, o.created_at, o.closed_at, o.audit_seq, o.audit_digest, k.id, k.org, k.name, k.role, k.hash, k.hint, k.created_at, k.created_by, k.expires_at, k.revoked_at,
    k.last_used_at, k.rotated_at, k.old_hash, k.old_until_at
FROM holdfast_api_keys AS k JOIN holdfast_orgs AS o ON o.slug = k.org
WHERE k.hash = $1::text OR k.old_hash = $1::text;

-- name: of_org
-- The newest keys of an org, with ids below one if it is given.
SELECT id, org, name, role, hash, hint, created_at, created_by, expires_at, revoked_at, last_used_at, rotated_at,
    old_hash, old_until_at
FROM holdfast_api_keys WHERE org = $1::text AND ($2::text IS NULL OR id < $2::text) ORDER BY id DESC LIMIT $3::bigint;

-- name: any
SELECT EXISTS (SELECT 1 FROM holdfast_api_keys);

-- name: insert_audit
INSERT INTO holdfast_audit (org, seq, at, actor, action, subject, address, outcome, detail, digest)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[]);

-- name: audit_of_org
-- The newest acts in an org, with numbers below one if it is given.
SELECT org, seq, at, actor, action, subject, address, outcome, detail, digest FROM holdfast_audit
WHERE org = $1::text AND ($2::bigint IS NULL OR seq < $2::bigint) ORDER BY seq DESC LIMIT $3::bigint;
