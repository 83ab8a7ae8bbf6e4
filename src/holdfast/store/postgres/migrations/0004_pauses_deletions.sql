-- Queues and workers to which nothing is handed out for the time being.
-- compatible from: 1

CREATE TABLE holdfast_pauses (
    org      text   COLLATE "C" NOT NULL,
    what     text   COLLATE "C" NOT NULL,
    name     text   COLLATE "C" NOT NULL,
    mode     text   COLLATE "C" NOT NULL,
    since_at bigint NOT NULL,
    reason   text   COLLATE "C" NOT NULL,
    PRIMARY KEY (org, what, name),
    CHECK (what IN ('queue', 'worker')),
    CHECK (mode = 'paused' OR (mode = 'draining' AND what = 'worker'))
);

-- Orgs whose rows are being removed, page by page.
CREATE TABLE holdfast_deletions (
    org      text   COLLATE "C" NOT NULL PRIMARY KEY,
    since_at bigint NOT NULL
);
