-- Everything an execution owns is keyed by its time-ordered id, so that new rows land on the same few pages.
-- Instants are microseconds since 1970. A column that may be absent is NULL, never '' or 0.

CREATE TABLE holdfast_executions (
    id               TEXT    NOT NULL PRIMARY KEY,
    org              TEXT    NOT NULL,
    workflow_id      TEXT    NOT NULL,
    kind             TEXT    NOT NULL,
    version          TEXT    NOT NULL,
    queue            TEXT    NOT NULL,
    priority         INTEGER NOT NULL,
    state            TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    closed_at        INTEGER,
    last_seq         INTEGER NOT NULL,
    seen_seq         INTEGER NOT NULL,
    call_seq         INTEGER NOT NULL,
    signal_count     INTEGER NOT NULL,
    open_tasks       INTEGER NOT NULL,
    open_timers      INTEGER NOT NULL,
    epoch            INTEGER NOT NULL,
    nonce            INTEGER NOT NULL,
    crashes          INTEGER NOT NULL,
    close_rounds     INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    waiting_for      TEXT,
    stuck            TEXT,
    metadata         TEXT,
    -- OR, not IN: for a list SQLite fills a table in memory at every row, which doubles the cost of an update.
    CHECK (state = 'OPEN' OR state = 'COMPLETED' OR state = 'FAILED' OR state = 'STUCK' OR state = 'CANCELLED'
        OR state = 'TERMINATED' OR state = 'TIMED_OUT' OR state = 'CONTINUED'),
    CHECK ((closed_at IS NULL) = (state = 'OPEN' OR state = 'STUCK')),
    CHECK (last_seq >= 0 AND seen_seq BETWEEN 0 AND last_seq AND call_seq BETWEEN 0 AND last_seq),
    CHECK (signal_count >= 0 AND open_tasks >= 0 AND open_timers >= 0),
    CHECK (epoch >= 0 AND crashes >= 0 AND close_rounds >= 0),
    CHECK (cancel_requested BETWEEN 0 AND 1)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_executions_by_state ON holdfast_executions (org, state, id);
CREATE INDEX holdfast_executions_by_kind ON holdfast_executions (org, kind, id);
-- Executions without a key of the caller's have their id in its place and need no entry.
CREATE INDEX holdfast_executions_by_workflow_id ON holdfast_executions (org, workflow_id, id) WHERE workflow_id <> id;

CREATE TABLE holdfast_events (
    execution_id TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    type         TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    data         TEXT    NOT NULL,
    PRIMARY KEY (execution_id, seq),
    CHECK (seq >= 1),
    CHECK (version >= 1)
) STRICT, WITHOUT ROWID;

-- The newest execution of each workflow id, open or closed.
CREATE TABLE holdfast_workflow_keys (
    org          TEXT NOT NULL,
    workflow_id  TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    PRIMARY KEY (org, workflow_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_ready (
    execution_id  TEXT    NOT NULL PRIMARY KEY,
    org           TEXT    NOT NULL,
    queue         TEXT    NOT NULL,
    priority      INTEGER NOT NULL,
    kind          TEXT    NOT NULL,
    version       TEXT    NOT NULL,
    since_at      INTEGER NOT NULL,
    not_before_at INTEGER NOT NULL,
    worker        TEXT,
    news          INTEGER NOT NULL,
    avoid_build   TEXT,
    CHECK (worker <> ''),
    CHECK (news BETWEEN 0 AND 1)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_ready_to_claim ON holdfast_ready (org, queue, priority DESC, since_at) WHERE worker IS NULL;
CREATE INDEX holdfast_ready_delayed ON holdfast_ready (not_before_at) WHERE worker IS NULL AND not_before_at > 0;
CREATE INDEX holdfast_ready_by_worker ON holdfast_ready (worker) WHERE worker IS NOT NULL;

-- An execution is always read together with its ready row.
CREATE VIEW holdfast_heads AS
SELECT e.id, e.org, e.workflow_id, e.kind, e.version, e.queue, e.priority, e.state, e.created_at, e.updated_at,
    e.closed_at, e.last_seq, e.seen_seq, e.call_seq, e.signal_count, e.open_tasks, e.open_timers, e.epoch, e.nonce,
    e.crashes, e.close_rounds, e.cancel_requested, e.waiting_for, e.stuck, e.metadata,
    r.since_at, r.not_before_at, r.worker, r.news, r.avoid_build
FROM holdfast_executions AS e LEFT JOIN holdfast_ready AS r ON r.execution_id = e.id;

CREATE TABLE holdfast_tasks (
    execution_id  TEXT    NOT NULL,
    task_no       INTEGER NOT NULL,
    org           TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    queue         TEXT    NOT NULL,
    priority      INTEGER NOT NULL,
    input         TEXT    NOT NULL,
    retry         TEXT    NOT NULL,
    timeouts      TEXT    NOT NULL,
    scheduled_at  INTEGER NOT NULL,
    not_before_at INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    nonce         INTEGER NOT NULL,
    worker        TEXT,
    started_at    INTEGER,
    heartbeat_at  INTEGER,
    due_at        INTEGER,
    details       TEXT,
    progress      REAL,
    last_failure  TEXT,
    PRIMARY KEY (execution_id, task_no),
    CHECK (task_no >= 1),
    CHECK (attempt >= 0),
    CHECK (worker <> '')
) STRICT, WITHOUT ROWID;

-- Ordered by the moment a task became runnable: ordering retries by their age would let them starve or be starved.
CREATE INDEX holdfast_tasks_to_claim ON holdfast_tasks (org, queue, priority DESC, max(not_before_at, scheduled_at)) WHERE worker IS NULL;
CREATE INDEX holdfast_tasks_delayed ON holdfast_tasks (not_before_at) WHERE worker IS NULL AND not_before_at > 0;
CREATE INDEX holdfast_tasks_due ON holdfast_tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX holdfast_tasks_by_worker ON holdfast_tasks (worker) WHERE worker IS NOT NULL;

CREATE TABLE holdfast_timers (
    execution_id TEXT    NOT NULL,
    timer_no     INTEGER NOT NULL,
    org          TEXT    NOT NULL,
    fire_at      INTEGER NOT NULL,
    PRIMARY KEY (execution_id, timer_no),
    CHECK (timer_no >= 1)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_timers_due ON holdfast_timers (fire_at);

CREATE TABLE holdfast_workers (
    id             TEXT    NOT NULL PRIMARY KEY,
    org            TEXT    NOT NULL,
    host           TEXT    NOT NULL,
    pid            INTEGER NOT NULL,
    started_at     INTEGER NOT NULL,
    lease_until_at INTEGER NOT NULL,
    CHECK (id <> '')
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_definitions (
    org           TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    version       TEXT    NOT NULL,
    build         TEXT    NOT NULL,
    registered_at INTEGER NOT NULL,
    PRIMARY KEY (org, kind, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_requests (
    org         TEXT    NOT NULL,
    request_id  TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    answer      BLOB    NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (org, request_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_requests_by_age ON holdfast_requests (created_at);

CREATE TABLE holdfast_dead_letters (
    execution_id TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    org          TEXT    NOT NULL,
    reason       TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (execution_id, seq),
    CHECK (seq >= 1)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_dead_letters_by_age ON holdfast_dead_letters (org, at);
