-- Orgs that have keys, their keys (only hashes), and the record of acts.
-- compatible from: 1

CREATE TABLE holdfast_orgs (
    slug         text    COLLATE "C" NOT NULL PRIMARY KEY,
    created_at   bigint  NOT NULL,
    closed_at    bigint,
    audit_seq    bigint  NOT NULL,
    audit_digest text    COLLATE "C" NOT NULL,
    CHECK (audit_seq >= 0)
);

CREATE TABLE holdfast_api_keys (
    id           text    COLLATE "C" NOT NULL PRIMARY KEY,
    org          text    COLLATE "C" NOT NULL,
    name         text    COLLATE "C" NOT NULL,
    role         text    COLLATE "C" NOT NULL,
    hash         text    COLLATE "C" NOT NULL UNIQUE,
    hint         text    COLLATE "C" NOT NULL,
    created_at   bigint  NOT NULL,
    created_by   text    COLLATE "C",
    expires_at   bigint,
    revoked_at   bigint,
    last_used_at bigint,
    rotated_at   bigint,
    old_hash     text    COLLATE "C",
    old_until_at bigint,
    CHECK (role IN ('admin', 'writer', 'reader', 'worker')),
    CHECK (length(hash) = 64),
    CHECK ((old_hash IS NULL) = (old_until_at IS NULL))
);

CREATE INDEX holdfast_api_keys_by_org ON holdfast_api_keys (org, id);
CREATE INDEX holdfast_api_keys_by_old_hash ON holdfast_api_keys (old_hash) WHERE old_hash IS NOT NULL;

-- Only ever added to. Each digest covers the one before; the org's row has the last.
CREATE TABLE holdfast_audit (
    org     text   COLLATE "C" NOT NULL,
    seq     bigint NOT NULL,
    at      bigint NOT NULL,
    actor   text   COLLATE "C" NOT NULL,
    action  text   COLLATE "C" NOT NULL,
    subject text   COLLATE "C" NOT NULL,
    address text   COLLATE "C" NOT NULL,
    outcome text   COLLATE "C" NOT NULL,
    detail  text   COLLATE "C" NOT NULL,
    digest  text   COLLATE "C" NOT NULL,
    PRIMARY KEY (org, seq),
    CHECK (seq > 0)
);
