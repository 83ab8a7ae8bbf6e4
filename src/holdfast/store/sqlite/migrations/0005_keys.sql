-- Orgs that have keys, their keys (only hashes), and the record of acts.
CREATE TABLE holdfast_orgs (
    slug         TEXT    NOT NULL PRIMARY KEY,
    created_at   INTEGER NOT NULL,
    closed_at    INTEGER,
    audit_seq    INTEGER NOT NULL,
    audit_digest TEXT    NOT NULL,
    CHECK (audit_seq >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_api_keys (
    id           TEXT    NOT NULL PRIMARY KEY,
    org          TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    role         TEXT    NOT NULL,
    hash         TEXT    NOT NULL UNIQUE,
    hint         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER,
    rotated_at   INTEGER,
    old_hash     TEXT,
    old_until_at INTEGER,
    CHECK (role = 'admin' OR role = 'writer' OR role = 'reader' OR role = 'worker'),
    CHECK (length(hash) = 64),
    CHECK ((old_hash IS NULL) = (old_until_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_api_keys_by_org ON holdfast_api_keys (org, id);
CREATE INDEX holdfast_api_keys_by_old_hash ON holdfast_api_keys (old_hash) WHERE old_hash IS NOT NULL;

-- Only ever added to. Each digest covers the one before; the org's row has the last.
CREATE TABLE holdfast_audit (
    org     TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    actor   TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    address TEXT    NOT NULL,
    outcome TEXT    NOT NULL,
    detail  TEXT    NOT NULL,
    digest  TEXT    NOT NULL,
    PRIMARY KEY (org, seq),
    CHECK (seq > 0)
) STRICT, WITHOUT ROWID;
