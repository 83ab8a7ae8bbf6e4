-- Queues and workers to which nothing is handed out for the time being.
CREATE TABLE holdfast_pauses (
    org      TEXT    NOT NULL,
    what     TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    mode     TEXT    NOT NULL,
    since_at INTEGER NOT NULL,
    reason   TEXT    NOT NULL,
    PRIMARY KEY (org, what, name),
    CHECK (what = 'queue' OR what = 'worker'),
    CHECK (mode = 'paused' OR (mode = 'draining' AND what = 'worker'))
) STRICT, WITHOUT ROWID;

-- Orgs whose rows are being removed, page by page.
CREATE TABLE holdfast_deletions (
    org      TEXT    NOT NULL PRIMARY KEY,
    since_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
