-- Parents and children, successors, metadata to search by, and the deadline of an execution as its timer number 0.

ALTER TABLE holdfast_executions ADD COLUMN open_children INTEGER NOT NULL DEFAULT 0 CHECK (open_children >= 0);
ALTER TABLE holdfast_executions ADD COLUMN parent_id TEXT;
ALTER TABLE holdfast_executions ADD COLUMN child_no INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_executions ADD COLUMN on_parent_close TEXT;
ALTER TABLE holdfast_executions ADD COLUMN successor TEXT;

CREATE INDEX holdfast_executions_by_parent ON holdfast_executions (parent_id, child_no) WHERE parent_id IS NOT NULL;
-- Closed parents some of whose children have not met their fate yet: few, and only for a moment.
CREATE INDEX holdfast_executions_bereaved ON holdfast_executions (id) WHERE open_children > 0 AND closed_at IS NOT NULL;

DROP VIEW holdfast_heads;
CREATE VIEW holdfast_heads AS
SELECT e.id, e.org, e.workflow_id, e.kind, e.version, e.queue, e.priority, e.state, e.created_at, e.updated_at,
    e.closed_at, e.last_seq, e.seen_seq, e.call_seq, e.signal_count, e.open_tasks, e.open_timers, e.open_children,
    e.epoch, e.nonce, e.crashes, e.close_rounds, e.cancel_requested, e.waiting_for, e.stuck, e.metadata, e.parent_id,
    e.child_no, e.on_parent_close, e.successor,
    r.since_at, r.not_before_at, r.worker, r.news, r.avoid_build
FROM holdfast_executions AS e LEFT JOIN holdfast_ready AS r ON r.execution_id = e.id;

-- What executions are tagged with, to find them by.
CREATE TABLE holdfast_metadata (
    org          TEXT NOT NULL,
    key          TEXT NOT NULL,
    value        TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    PRIMARY KEY (org, key, value, execution_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_metadata_by_execution ON holdfast_metadata (execution_id);

INSERT INTO holdfast_metadata (org, key, value, execution_id)
SELECT e.org, m.key, m.value, e.id FROM holdfast_executions AS e CROSS JOIN json_each(e.metadata) AS m
WHERE e.metadata IS NOT NULL;

-- A timer may have number 0 now. SQLite can't change a CHECK, so the table is made anew.
DROP INDEX holdfast_timers_due;
ALTER TABLE holdfast_timers RENAME TO holdfast_timers_before;
CREATE TABLE holdfast_timers (
    execution_id TEXT    NOT NULL,
    timer_no     INTEGER NOT NULL,
    org          TEXT    NOT NULL,
    fire_at      INTEGER NOT NULL,
    PRIMARY KEY (execution_id, timer_no),
    CHECK (timer_no >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO holdfast_timers (execution_id, timer_no, org, fire_at)
SELECT execution_id, timer_no, org, fire_at FROM holdfast_timers_before;
DROP TABLE holdfast_timers_before;
CREATE INDEX holdfast_timers_due ON holdfast_timers (fire_at);
