-- What running tasks say. The number of a task's last chunk is on its row: numbers go on from attempt to attempt.
ALTER TABLE holdfast_tasks ADD COLUMN output_seq INTEGER NOT NULL DEFAULT 0;

CREATE TABLE holdfast_task_output (
    execution_id TEXT    NOT NULL,
    task_no      INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    data         TEXT    NOT NULL,
    PRIMARY KEY (execution_id, task_no, seq),
    CHECK (seq >= 1)
) STRICT, WITHOUT ROWID;
