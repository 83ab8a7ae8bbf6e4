-- The whole schema of the first release on PostgreSQL. It says what the SQLite store's migrations say together.
-- Text is compared byte by byte (COLLATE "C"), so that the order of keys, which is the order of locks, is the same
-- everywhere and needs no locale. Instants are microseconds since 1970. JSON is kept as text: byte for byte what was
-- written. A column that may be absent is NULL, never '' or 0.

CREATE TABLE holdfast_executions (
    id               text     COLLATE "C" NOT NULL PRIMARY KEY,
    org              text     COLLATE "C" NOT NULL,
    workflow_id      text     COLLATE "C" NOT NULL,
    kind             text     COLLATE "C" NOT NULL,
    version          text     COLLATE "C" NOT NULL,
    queue            text     COLLATE "C" NOT NULL,
    priority         bigint   NOT NULL,
    state            text     COLLATE "C" NOT NULL,
    created_at       bigint   NOT NULL,
    updated_at       bigint   NOT NULL,
    closed_at        bigint,
    last_seq         bigint   NOT NULL,
    seen_seq         bigint   NOT NULL,
    call_seq         bigint   NOT NULL,
    signal_count     bigint   NOT NULL,
    open_tasks       bigint   NOT NULL,
    open_timers      bigint   NOT NULL,
    open_children    bigint   NOT NULL,
    open_waits       bigint   NOT NULL,
    epoch            bigint   NOT NULL,
    nonce            bigint   NOT NULL,
    crashes          bigint   NOT NULL,
    close_rounds     bigint   NOT NULL,
    cancel_requested boolean  NOT NULL,
    waiting_for      text     COLLATE "C",
    stuck            text     COLLATE "C",
    metadata         text     COLLATE "C",
    parent_id        text     COLLATE "C",
    child_no         bigint   NOT NULL,
    on_parent_close  text     COLLATE "C",
    successor        text     COLLATE "C",
    CHECK (state IN ('OPEN', 'STUCK', 'COMPLETED', 'FAILED', 'CANCELLED', 'TERMINATED', 'TIMED_OUT', 'CONTINUED')),
    CHECK ((closed_at IS NULL) = (state IN ('OPEN', 'STUCK'))),
    CHECK (last_seq >= 0 AND seen_seq BETWEEN 0 AND last_seq AND call_seq BETWEEN 0 AND last_seq),
    CHECK (signal_count >= 0 AND open_tasks >= 0 AND open_timers >= 0 AND open_children >= 0 AND open_waits >= 0),
    CHECK (epoch >= 0 AND crashes >= 0 AND close_rounds >= 0)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- POSIX compares like C and is yet another collation: so a page, which asks for that order, is never answered by walking
-- the primary key past the rows of other orgs and states.
CREATE INDEX holdfast_executions_by_state ON holdfast_executions (org, state, id COLLATE "POSIX");
CREATE INDEX holdfast_executions_by_kind ON holdfast_executions (org, kind, state, id COLLATE "POSIX");
-- Ids begin with the time they were made at, so pages by time are pages by id. These few were made at another time.
CREATE INDEX holdfast_executions_astray ON holdfast_executions (org, id COLLATE "POSIX", created_at)
    WHERE id < overlay(lpad(to_hex(greatest(created_at / 1000 - 60000, 0)), 12, '0') PLACING '-' FROM 9 FOR 0)
        OR id >= overlay(lpad(to_hex(created_at / 1000 + 60000), 12, '0') PLACING '-' FROM 9 FOR 0);
-- Executions without a key of the caller's have their id in its place and need no entry.
CREATE INDEX holdfast_executions_by_workflow_id ON holdfast_executions (org, workflow_id, id) WHERE workflow_id <> id;
CREATE INDEX holdfast_executions_by_parent ON holdfast_executions (parent_id, child_no) WHERE parent_id IS NOT NULL;
-- Those that have brought workers down and may do so again.
CREATE INDEX holdfast_executions_suspect ON holdfast_executions (org, id) WHERE crashes > 0 AND closed_at IS NULL;
-- Closed parents some of whose children have not met their fate yet: few, and only for a moment.
CREATE INDEX holdfast_executions_bereaved ON holdfast_executions (id) WHERE open_children > 0 AND closed_at IS NOT NULL;

CREATE TABLE holdfast_events (
    execution_id text    COLLATE "C" NOT NULL,
    seq          bigint  NOT NULL,
    type         text    COLLATE "C" NOT NULL,
    version      integer NOT NULL,
    at           bigint  NOT NULL,
    data         text    COLLATE "C" NOT NULL,
    PRIMARY KEY (execution_id, seq),
    CHECK (seq >= 1),
    CHECK (version >= 1)
);

-- The newest execution of each workflow id, open or closed.
CREATE TABLE holdfast_workflow_keys (
    org          text COLLATE "C" NOT NULL,
    workflow_id  text COLLATE "C" NOT NULL,
    execution_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (org, workflow_id)
);

-- A queue: narrow, short-lived rows, swept often.
CREATE TABLE holdfast_ready (
    execution_id  text    COLLATE "C" NOT NULL PRIMARY KEY,
    org           text    COLLATE "C" NOT NULL,
    queue         text    COLLATE "C" NOT NULL,
    priority      bigint  NOT NULL,
    kind          text    COLLATE "C" NOT NULL,
    version       text    COLLATE "C" NOT NULL,
    since_at      bigint  NOT NULL,
    not_before_at bigint  NOT NULL,
    worker        text    COLLATE "C",
    news          boolean NOT NULL,
    avoid_build   text    COLLATE "C",
    CHECK (worker <> '')
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 5000, autovacuum_analyze_scale_factor = 0.0);

CREATE INDEX holdfast_ready_to_claim ON holdfast_ready (org, queue, priority DESC, since_at, execution_id)
    WHERE worker IS NULL;
CREATE INDEX holdfast_ready_delayed ON holdfast_ready (not_before_at) WHERE worker IS NULL AND not_before_at > 0;
CREATE INDEX holdfast_ready_by_worker ON holdfast_ready (worker) WHERE worker IS NOT NULL;

CREATE TABLE holdfast_tasks (
    execution_id  text    COLLATE "C" NOT NULL,
    task_no       bigint  NOT NULL,
    org           text    COLLATE "C" NOT NULL,
    kind          text    COLLATE "C" NOT NULL,
    queue         text    COLLATE "C" NOT NULL,
    priority      bigint  NOT NULL,
    input         text    COLLATE "C" NOT NULL,
    retry         text    COLLATE "C" NOT NULL,
    timeouts      text    COLLATE "C" NOT NULL,
    scheduled_at  bigint  NOT NULL,
    not_before_at bigint  NOT NULL,
    attempt       bigint  NOT NULL,
    nonce         bigint  NOT NULL,
    worker        text    COLLATE "C",
    started_at    bigint,
    heartbeat_at  bigint,
    due_at        bigint,
    details       text    COLLATE "C",
    progress      double precision,
    last_failure  text    COLLATE "C",
    deferred      boolean NOT NULL,
    PRIMARY KEY (execution_id, task_no),
    CHECK (task_no >= 1),
    CHECK (attempt >= 0),
    CHECK (worker <> '')
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 5000, autovacuum_analyze_scale_factor = 0.0);

-- Ordered by the moment a task became runnable: ordering retries by their age would let them starve or be starved.
-- A task that somebody outside is to complete is not claimed by anybody.
CREATE INDEX holdfast_tasks_to_claim ON holdfast_tasks
    (org, queue, priority DESC, (greatest(not_before_at, scheduled_at)), execution_id, task_no)
    WHERE worker IS NULL AND NOT deferred;
CREATE INDEX holdfast_tasks_delayed ON holdfast_tasks (not_before_at)
    WHERE worker IS NULL AND NOT deferred AND not_before_at > 0;
CREATE INDEX holdfast_tasks_due ON holdfast_tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX holdfast_tasks_by_worker ON holdfast_tasks (worker) WHERE worker IS NOT NULL;

CREATE TABLE holdfast_timers (
    execution_id text   COLLATE "C" NOT NULL,
    timer_no     bigint NOT NULL,
    org          text   COLLATE "C" NOT NULL,
    fire_at      bigint NOT NULL,
    promise      text   COLLATE "C",
    PRIMARY KEY (execution_id, timer_no),
    CHECK (timer_no >= 0)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX holdfast_timers_due ON holdfast_timers (fire_at, execution_id, timer_no);

CREATE TABLE holdfast_workers (
    id             text   COLLATE "C" NOT NULL PRIMARY KEY,
    org            text   COLLATE "C" NOT NULL,
    host           text   COLLATE "C" NOT NULL,
    pid            bigint NOT NULL,
    started_at     bigint NOT NULL,
    lease_until_at bigint NOT NULL,
    CHECK (id <> '')
);

CREATE TABLE holdfast_definitions (
    org           text   COLLATE "C" NOT NULL,
    kind          text   COLLATE "C" NOT NULL,
    version       text   COLLATE "C" NOT NULL,
    build         text   COLLATE "C" NOT NULL,
    registered_at bigint NOT NULL,
    PRIMARY KEY (org, kind, version)
);

-- An idempotency key lives as long as its subject is at work, and for its time to live after that.
CREATE TABLE holdfast_requests (
    org          text   COLLATE "C" NOT NULL,
    request_id   text   COLLATE "C" NOT NULL,
    fingerprint  text   COLLATE "C" NOT NULL,
    answer       bytea  NOT NULL,
    created_at   bigint NOT NULL,
    ttl          bigint NOT NULL,
    expires_at   bigint NOT NULL,
    execution_id text   COLLATE "C",
    subject      text   COLLATE "C",
    PRIMARY KEY (org, request_id)
);

CREATE INDEX holdfast_requests_by_age ON holdfast_requests (expires_at);

-- A dead letter that was redelivered or removed stays, so that nothing makes one of the same signal again.
CREATE TABLE holdfast_dead_letters (
    execution_id text    COLLATE "C" NOT NULL,
    seq          bigint  NOT NULL,
    org          text    COLLATE "C" NOT NULL,
    reason       text    COLLATE "C" NOT NULL,
    at           bigint  NOT NULL,
    settled      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (execution_id, seq),
    CHECK (seq >= 1)
);

CREATE INDEX holdfast_dead_letters_by_age ON holdfast_dead_letters (org, at);

-- What executions are tagged with, to find them by.
CREATE TABLE holdfast_metadata (
    org          text COLLATE "C" NOT NULL,
    key          text COLLATE "C" NOT NULL,
    value        text COLLATE "C" NOT NULL,
    execution_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (org, key, value, execution_id)
);

CREATE INDEX holdfast_metadata_by_execution ON holdfast_metadata (execution_id);

CREATE TABLE holdfast_promises (
    execution_id text   COLLATE "C" NOT NULL,
    name         text   COLLATE "C" NOT NULL,
    org          text   COLLATE "C" NOT NULL,
    promise_no   bigint NOT NULL,
    state        text   COLLATE "C" NOT NULL,
    created_at   bigint NOT NULL,
    value        text   COLLATE "C" NOT NULL,
    failure      text   COLLATE "C",
    settled_at   bigint,
    settled_by   text   COLLATE "C",
    event_key    text   COLLATE "C",
    timer_no     bigint,
    expires_at   bigint,
    shape        text   COLLATE "C" NOT NULL,
    PRIMARY KEY (execution_id, name),
    CHECK (promise_no >= 0),
    CHECK (state IN ('PENDING', 'RESOLVED', 'REJECTED', 'TIMED_OUT', 'CANCELLED')),
    CHECK ((settled_at IS NULL) = (state = 'PENDING'))
);

CREATE INDEX holdfast_promises_early ON holdfast_promises (expires_at) WHERE promise_no = 0;

CREATE TABLE holdfast_tokens (
    token_hash   text   COLLATE "C" NOT NULL PRIMARY KEY,
    org          text   COLLATE "C" NOT NULL,
    execution_id text   COLLATE "C" NOT NULL,
    promise      text   COLLATE "C",
    task_no      bigint,
    attempt      bigint,
    CHECK ((promise IS NULL) <> (task_no IS NULL))
);

CREATE INDEX holdfast_tokens_by_execution ON holdfast_tokens (execution_id);

CREATE TABLE holdfast_subscriptions (
    id           bigint  NOT NULL PRIMARY KEY,
    execution_id text    COLLATE "C" NOT NULL,
    wait_no      bigint  NOT NULL,
    org          text    COLLATE "C" NOT NULL,
    kind         text    COLLATE "C" NOT NULL,
    key          text    COLLATE "C" NOT NULL,
    created_at   bigint  NOT NULL,
    eq_path      text    COLLATE "C",
    eq_value     text    COLLATE "C",
    filter       text    COLLATE "C",
    consume      boolean NOT NULL,
    promise      text    COLLATE "C",
    joins        bigint,
    CHECK (kind IN ('event', 'message', 'broadcast')),
    CHECK ((eq_path IS NULL) = (eq_value IS NULL))
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX holdfast_subscriptions_by_value ON holdfast_subscriptions (org, kind, key, eq_path, eq_value, id)
    WHERE eq_path IS NOT NULL;
CREATE INDEX holdfast_subscriptions_by_key ON holdfast_subscriptions (org, kind, key, id) WHERE eq_path IS NULL;
CREATE INDEX holdfast_subscriptions_by_execution ON holdfast_subscriptions (execution_id, wait_no);

CREATE TABLE holdfast_published (
    id             bigint  NOT NULL PRIMARY KEY,
    org            text    COLLATE "C" NOT NULL,
    key            text    COLLATE "C" NOT NULL,
    data           text    COLLATE "C" NOT NULL,
    published_at   bigint  NOT NULL,
    expires_at     bigint  NOT NULL,
    correlation    text    COLLATE "C",
    created_before boolean NOT NULL,
    consume        boolean NOT NULL,
    delivered      bigint  NOT NULL
);

CREATE INDEX holdfast_published_by_key ON holdfast_published (org, key, id);
CREATE INDEX holdfast_published_by_age ON holdfast_published (expires_at);

CREATE TABLE holdfast_event_keys (
    org      text   COLLATE "C" NOT NULL,
    key      text   COLLATE "C" NOT NULL,
    retained bigint NOT NULL,
    dropped  bigint NOT NULL,
    PRIMARY KEY (org, key)
) WITH (fillfactor = 70);

-- Events that nobody ever got, and why.
CREATE TABLE holdfast_dead_events (
    id           bigint NOT NULL PRIMARY KEY,
    org          text   COLLATE "C" NOT NULL,
    key          text   COLLATE "C" NOT NULL,
    data         text   COLLATE "C" NOT NULL,
    published_at bigint NOT NULL,
    correlation  text   COLLATE "C",
    reason       text   COLLATE "C" NOT NULL,
    at           bigint NOT NULL
);

CREATE INDEX holdfast_dead_events_by_org ON holdfast_dead_events (org, id);
CREATE INDEX holdfast_dead_events_by_age ON holdfast_dead_events (at);

CREATE TABLE holdfast_deliveries (
    id              bigint  NOT NULL PRIMARY KEY,
    org             text    COLLATE "C" NOT NULL,
    kind            text    COLLATE "C" NOT NULL,
    key             text    COLLATE "C" NOT NULL,
    data            text    COLLATE "C" NOT NULL,
    sent_at         bigint  NOT NULL,
    cursor          bigint  NOT NULL,
    bound           bigint  NOT NULL,
    delivered       bigint  NOT NULL,
    correlation     text    COLLATE "C",
    consume         boolean NOT NULL,
    kept            boolean NOT NULL,
    idempotency_key text    COLLATE "C",
    done_at         bigint
);

CREATE INDEX holdfast_deliveries_open ON holdfast_deliveries (org, kind, key, id) WHERE done_at IS NULL;
CREATE INDEX holdfast_deliveries_done ON holdfast_deliveries (done_at) WHERE done_at IS NOT NULL;

-- Which workflows an event starts.
CREATE TABLE holdfast_event_triggers (
    org     text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    queue   text COLLATE "C" NOT NULL,
    filter  text COLLATE "C",
    PRIMARY KEY (org, key, kind)
);

-- Events, waits and broadcasts share one sequence of numbers. Every transaction that may need some draws a block of
-- its own, after it has got the locks of its topics: within a topic a higher number is then a later one.
CREATE SEQUENCE holdfast_numbers INCREMENT BY 65536;

-- Whoever publishes, throws or begins to wait holds the lock of his topic: one of these rows, chosen by a hash of org
-- and key. So a wait and an event of one key can't pass each other unseen.
CREATE TABLE holdfast_topic_locks (
    id integer NOT NULL PRIMARY KEY
);
INSERT INTO holdfast_topic_locks (id) SELECT generate_series(0, 1023);

-- What all nodes on this database must have in common.
CREATE TABLE holdfast_settings (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    value text COLLATE "C" NOT NULL
);

-- The last transaction of each node's writer, written by that transaction itself: where the answer to a COMMIT was lost,
-- this row tells whether it stands, whatever has become of the server.
CREATE TABLE holdfast_writers (
    id    text   COLLATE "C" NOT NULL PRIMARY KEY,
    batch bigint NOT NULL,
    at    bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_cost_delay = 0);
