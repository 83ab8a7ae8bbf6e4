-- What running tasks say. The number of a task's last chunk is on its row: numbers go on from attempt to attempt.
-- compatible from: 1

ALTER TABLE holdfast_tasks ADD COLUMN output_seq bigint NOT NULL DEFAULT 0;

CREATE TABLE holdfast_task_output (
    execution_id text   COLLATE "C" NOT NULL,
    task_no      bigint NOT NULL,
    seq          bigint NOT NULL,
    attempt      bigint NOT NULL,
    at           bigint NOT NULL,
    data         text   COLLATE "C" NOT NULL,
    PRIMARY KEY (execution_id, task_no, seq),
    CHECK (seq >= 1)
);
