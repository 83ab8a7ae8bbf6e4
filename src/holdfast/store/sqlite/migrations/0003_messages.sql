-- Promises, subscriptions, published events, broadcasts; idempotency keys with a life of their own.

CREATE TABLE holdfast_promises (
    execution_id TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    org          TEXT    NOT NULL,
    promise_no   INTEGER NOT NULL,
    state        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    value        TEXT    NOT NULL,
    failure      TEXT,
    settled_at   INTEGER,
    settled_by   TEXT,
    event_key    TEXT,
    timer_no     INTEGER,
    expires_at   INTEGER,
    PRIMARY KEY (execution_id, name),
    CHECK (promise_no >= 0),
    CHECK (state = 'PENDING' OR state = 'RESOLVED' OR state = 'REJECTED' OR state = 'TIMED_OUT' OR state = 'CANCELLED'),
    CHECK ((settled_at IS NULL) = (state = 'PENDING'))
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_promises_early ON holdfast_promises (expires_at) WHERE promise_no = 0;

CREATE TABLE holdfast_tokens (
    token_hash   TEXT NOT NULL PRIMARY KEY,
    org          TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    promise      TEXT,
    task_no      INTEGER,
    attempt      INTEGER,
    CHECK ((promise IS NULL) <> (task_no IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_tokens_by_execution ON holdfast_tokens (execution_id);

CREATE TABLE holdfast_subscriptions (
    id           INTEGER NOT NULL PRIMARY KEY,
    execution_id TEXT    NOT NULL,
    wait_no      INTEGER NOT NULL,
    org          TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    eq_path      TEXT,
    eq_value     TEXT,
    filter       TEXT,
    consume      INTEGER NOT NULL,
    promise      TEXT,
    joins        INTEGER,
    CHECK (kind = 'event' OR kind = 'message' OR kind = 'broadcast'),
    CHECK ((eq_path IS NULL) = (eq_value IS NULL))
) STRICT;

CREATE INDEX holdfast_subscriptions_by_key ON holdfast_subscriptions (org, kind, key, eq_path, eq_value, id);
CREATE INDEX holdfast_subscriptions_by_execution ON holdfast_subscriptions (execution_id);

CREATE TABLE holdfast_published (
    id             INTEGER NOT NULL PRIMARY KEY,
    org            TEXT    NOT NULL,
    key            TEXT    NOT NULL,
    data           TEXT    NOT NULL,
    published_at   INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    correlation    TEXT,
    created_before INTEGER NOT NULL,
    consume        INTEGER NOT NULL,
    delivered      INTEGER NOT NULL
) STRICT;

CREATE INDEX holdfast_published_by_key ON holdfast_published (org, key, id);
CREATE INDEX holdfast_published_by_age ON holdfast_published (expires_at);

CREATE TABLE holdfast_event_keys (
    org      TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    retained INTEGER NOT NULL,
    dropped  INTEGER NOT NULL,
    PRIMARY KEY (org, key)
) STRICT, WITHOUT ROWID;

-- Events that nobody ever got, and why.
CREATE TABLE holdfast_dead_events (
    id           INTEGER NOT NULL PRIMARY KEY,
    org          TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    data         TEXT    NOT NULL,
    published_at INTEGER NOT NULL,
    correlation  TEXT,
    reason       TEXT    NOT NULL,
    at           INTEGER NOT NULL
) STRICT;

CREATE INDEX holdfast_dead_events_by_org ON holdfast_dead_events (org, id);
CREATE INDEX holdfast_dead_events_by_age ON holdfast_dead_events (at);

CREATE TABLE holdfast_deliveries (
    id             INTEGER NOT NULL PRIMARY KEY,
    org            TEXT    NOT NULL,
    kind           TEXT    NOT NULL,
    key            TEXT    NOT NULL,
    data           TEXT    NOT NULL,
    sent_at        INTEGER NOT NULL,
    cursor         INTEGER NOT NULL,
    bound          INTEGER NOT NULL,
    delivered      INTEGER NOT NULL,
    correlation    TEXT,
    consume        INTEGER NOT NULL,
    kept           INTEGER NOT NULL,
    idempotency_key TEXT,
    done_at        INTEGER
) STRICT;

CREATE INDEX holdfast_deliveries_open ON holdfast_deliveries (org, kind, key, id) WHERE done_at IS NULL;
CREATE INDEX holdfast_deliveries_done ON holdfast_deliveries (done_at) WHERE done_at IS NOT NULL;

-- Which workflows an event starts.
CREATE TABLE holdfast_event_triggers (
    org     TEXT NOT NULL,
    key     TEXT NOT NULL,
    kind    TEXT NOT NULL,
    version TEXT NOT NULL,
    queue   TEXT NOT NULL,
    filter  TEXT,
    PRIMARY KEY (org, key, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_sequences (
    name TEXT    NOT NULL PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE holdfast_executions ADD COLUMN open_waits INTEGER NOT NULL DEFAULT 0 CHECK (open_waits >= 0);
ALTER TABLE holdfast_timers ADD COLUMN promise TEXT;

-- A task that somebody outside is to complete is not claimed by anybody.
ALTER TABLE holdfast_tasks ADD COLUMN deferred INTEGER NOT NULL DEFAULT 0 CHECK (deferred BETWEEN 0 AND 1);
DROP INDEX holdfast_tasks_to_claim;
DROP INDEX holdfast_tasks_delayed;
CREATE INDEX holdfast_tasks_to_claim ON holdfast_tasks (org, queue, priority DESC, max(not_before_at, scheduled_at))
    WHERE worker IS NULL AND deferred = 0;
CREATE INDEX holdfast_tasks_delayed ON holdfast_tasks (not_before_at)
    WHERE worker IS NULL AND deferred = 0 AND not_before_at > 0;

-- An idempotency key lives as long as its subject is at work, and for its time to live after that.
ALTER TABLE holdfast_requests ADD COLUMN ttl INTEGER NOT NULL DEFAULT 86400000000;
ALTER TABLE holdfast_requests ADD COLUMN expires_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_requests ADD COLUMN execution_id TEXT;
ALTER TABLE holdfast_requests ADD COLUMN subject TEXT;
UPDATE holdfast_requests SET expires_at = created_at + ttl;
DROP INDEX holdfast_requests_by_age;
CREATE INDEX holdfast_requests_by_age ON holdfast_requests (expires_at);

-- A dead letter that was redelivered or removed stays, so that nothing makes one of the same signal again.
ALTER TABLE holdfast_dead_letters ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;

DROP VIEW holdfast_heads;
CREATE VIEW holdfast_heads AS
SELECT e.id, e.org, e.workflow_id, e.kind, e.version, e.queue, e.priority, e.state, e.created_at, e.updated_at,
    e.closed_at, e.last_seq, e.seen_seq, e.call_seq, e.signal_count, e.open_tasks, e.open_timers, e.open_children,
    e.open_waits, e.epoch, e.nonce, e.crashes, e.close_rounds, e.cancel_requested, e.waiting_for, e.stuck, e.metadata,
    e.parent_id, e.child_no, e.on_parent_close, e.successor,
    r.since_at, r.not_before_at, r.worker, r.news, r.avoid_build
FROM holdfast_executions AS e LEFT JOIN holdfast_ready AS r ON r.execution_id = e.id;
