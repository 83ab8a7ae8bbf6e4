-- More of the rules that every version has kept, said by the tables as well. First for what is written from now on, with a
-- lock that is held for a moment; then for what is there, while everybody goes on.
-- no transaction
-- compatible from: 1

ALTER TABLE holdfast_executions
    DROP CONSTRAINT IF EXISTS holdfast_executions_stuck,
    DROP CONSTRAINT IF EXISTS holdfast_executions_successor,
    DROP CONSTRAINT IF EXISTS holdfast_executions_family,
    -- One that was taken up again keeps the reason until its turn has gone well.
    ADD CONSTRAINT holdfast_executions_stuck CHECK (CASE state WHEN 'STUCK' THEN stuck IS NOT NULL
        WHEN 'OPEN' THEN true ELSE stuck IS NULL END) NOT VALID,
    -- One that was reset has a successor, too, whatever became of it.
    ADD CONSTRAINT holdfast_executions_successor CHECK (CASE state WHEN 'CONTINUED' THEN successor IS NOT NULL
        WHEN 'OPEN' THEN successor IS NULL WHEN 'STUCK' THEN successor IS NULL ELSE true END) NOT VALID,
    ADD CONSTRAINT holdfast_executions_family CHECK (CASE WHEN parent_id IS NULL
        THEN on_parent_close IS NULL AND child_no = 0
        ELSE on_parent_close IS NOT NULL AND on_parent_close IN ('default', 'terminate', 'cancel', 'abandon')
            AND child_no >= 1 END) NOT VALID;

ALTER TABLE holdfast_tasks
    DROP CONSTRAINT IF EXISTS holdfast_tasks_running,
    DROP CONSTRAINT IF EXISTS holdfast_tasks_deferred,
    DROP CONSTRAINT IF EXISTS holdfast_tasks_output,
    ADD CONSTRAINT holdfast_tasks_running CHECK (CASE WHEN worker IS NOT NULL OR deferred
        THEN attempt >= 1 AND started_at IS NOT NULL ELSE started_at IS NULL END) NOT VALID,
    -- Its body may still run. Once it has returned nobody may claim the task: the instant is one that does not come.
    ADD CONSTRAINT holdfast_tasks_deferred CHECK (NOT deferred OR worker IS NOT NULL
        OR not_before_at = 4611686018427387904) NOT VALID,
    ADD CONSTRAINT holdfast_tasks_output CHECK (output_seq >= 0) NOT VALID;

ALTER TABLE holdfast_task_output
    DROP CONSTRAINT IF EXISTS holdfast_task_output_attempt,
    ADD CONSTRAINT holdfast_task_output_attempt CHECK (attempt >= 1) NOT VALID;

ALTER TABLE holdfast_promises
    DROP CONSTRAINT IF EXISTS holdfast_promises_failure,
    DROP CONSTRAINT IF EXISTS holdfast_promises_settled_early,
    ADD CONSTRAINT holdfast_promises_failure CHECK ((failure IS NULL) = (state <> 'REJECTED')) NOT VALID,
    -- One that was settled before its workflow has made it, and is forgotten some day.
    ADD CONSTRAINT holdfast_promises_settled_early CHECK (CASE WHEN promise_no = 0
        THEN expires_at IS NOT NULL AND state IN ('RESOLVED', 'REJECTED') ELSE expires_at IS NULL END) NOT VALID;

ALTER TABLE holdfast_tokens
    DROP CONSTRAINT IF EXISTS holdfast_tokens_attempt,
    ADD CONSTRAINT holdfast_tokens_attempt CHECK ((attempt IS NULL) = (task_no IS NULL)) NOT VALID;

ALTER TABLE holdfast_subscriptions
    DROP CONSTRAINT IF EXISTS holdfast_subscriptions_promise,
    -- Waits count from 1; that of a promise has its number below 0.
    ADD CONSTRAINT holdfast_subscriptions_promise CHECK (CASE WHEN promise IS NULL THEN wait_no >= 1
        ELSE wait_no <= -1 AND kind = 'event' END) NOT VALID;

ALTER TABLE holdfast_deliveries
    DROP CONSTRAINT IF EXISTS holdfast_deliveries_kind,
    DROP CONSTRAINT IF EXISTS holdfast_deliveries_counts,
    ADD CONSTRAINT holdfast_deliveries_kind CHECK (kind IN ('event', 'message', 'broadcast')) NOT VALID,
    ADD CONSTRAINT holdfast_deliveries_counts CHECK (cursor >= 0 AND bound >= 0 AND delivered >= 0) NOT VALID;

ALTER TABLE holdfast_published
    DROP CONSTRAINT IF EXISTS holdfast_published_delivered,
    ADD CONSTRAINT holdfast_published_delivered CHECK (delivered >= 0) NOT VALID;

ALTER TABLE holdfast_executions
    VALIDATE CONSTRAINT holdfast_executions_stuck,
    VALIDATE CONSTRAINT holdfast_executions_successor,
    VALIDATE CONSTRAINT holdfast_executions_family;
ALTER TABLE holdfast_tasks
    VALIDATE CONSTRAINT holdfast_tasks_running,
    VALIDATE CONSTRAINT holdfast_tasks_deferred,
    VALIDATE CONSTRAINT holdfast_tasks_output;
ALTER TABLE holdfast_task_output VALIDATE CONSTRAINT holdfast_task_output_attempt;
ALTER TABLE holdfast_promises
    VALIDATE CONSTRAINT holdfast_promises_failure,
    VALIDATE CONSTRAINT holdfast_promises_settled_early;
ALTER TABLE holdfast_tokens VALIDATE CONSTRAINT holdfast_tokens_attempt;
ALTER TABLE holdfast_subscriptions VALIDATE CONSTRAINT holdfast_subscriptions_promise;
ALTER TABLE holdfast_deliveries
    VALIDATE CONSTRAINT holdfast_deliveries_kind,
    VALIDATE CONSTRAINT holdfast_deliveries_counts;
ALTER TABLE holdfast_published VALIDATE CONSTRAINT holdfast_published_delivered;
