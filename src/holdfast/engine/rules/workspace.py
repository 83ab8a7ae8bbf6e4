"""The records of one batch, and what its operations have changed in them.

Operations are applied one after another to the same records, so the second sees what the first did. An operation must
check everything before it changes anything: a refusal raised half-way would leave its traces to the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import msgspec

from holdfast.config import EngineConfig
from holdfast.contract.workers import Work
from holdfast.engine.rules.look_backs import Demand, FreshEvents, Question
from holdfast.errors import ExecutionNotFound, StaleAttempt
from holdfast.model.events import EventBody, HistoryEvent
from holdfast.model.executions import CLOSED_STATUS, Execution, Status, TaskRow, TimerRow
from holdfast.model.messages import DeliveryRow, SubscriptionKind, SubscriptionRow, TokenRow
from holdfast.model.records import table_of
from holdfast.model.values import Token
from holdfast.store.protocol import Changes, Loaded, LookBackKey, TaskKey

R = TypeVar("R")
Entropy = Callable[[], int]


class Outcome(msgspec.Struct, frozen=True):
    """How a closed execution ended: its last event."""

    status: Status
    last_event: HistoryEvent


class Placement(Protocol):
    """Which session of this process, if any, can take a piece of work at once."""

    def for_turn(self, execution: Execution) -> str | None: ...

    def for_task(self, task: TaskRow) -> str | None: ...

    def is_local(self, session: str) -> bool: ...

    def local_sessions(self) -> list[str]: ...

    def retire(self, session: str) -> None: ...

    def turn_done(self, session: str, execution: Execution) -> None: ...

    def turn_lost(self, execution_id: str, holder: str | None) -> None:
        """A session of this process has reported on a turn, but the lease is over: `holder` has it, or nobody."""
        ...

    def cleared(self, session: str, execution: Execution) -> None: ...

    def alive(self, session: str) -> None: ...

    def task_done(self, session: str) -> None:
        """The session has reported on a task, whether or not the report still counted."""
        ...


class Workspace:
    """See the module's text. `entropy` gives 64 random bits; `place` knows the sessions of this process."""

    __slots__ = (
        "_new",
        "_new_tasks",
        "_new_timers",
        "afterwards",
        "appended",
        "changes",
        "closed",
        "config",
        "delivered",
        "due_at",
        "entropy",
        "fresh_events",
        "fresh_waits",
        "granted",
        "loaded",
        "looking_back",
        "now",
        "place",
        "questions",
        "told",
        "work",
    )

    def __init__(self, loaded: Loaded, config: EngineConfig, place: Placement, entropy: Entropy) -> None:
        self.loaded = loaded
        self.now = loaded.now
        self.config = config
        self.place = place
        self.entropy = entropy
        self.changes = Changes()
        self.appended: dict[str, list[HistoryEvent]] = {}
        self.afterwards: list[Callable[[], None]] = []
        """What a turn's commands bring about once its own rows are written; see rules.commands."""
        self.looking_back: list[Callable[[], None]] = []
        """The same for waits that look back: first of all, so that they get the oldest event they may have."""
        self.questions: dict[int, Question] = {}
        self.fresh_events: dict[LookBackKey, FreshEvents] = {}
        self.fresh_waits: dict[tuple[str, SubscriptionKind, str], dict[Demand | None, list[int]]] = {}
        self.granted: dict[str, Execution] = {}
        self.told: dict[str, Execution] = {}
        self.work: list[tuple[str, Work]] = []
        self.closed: list[tuple[tuple[str, str], Outcome]] = []
        self.delivered: list[DeliveryRow] = []
        """Deliveries that have reached their last page."""
        self.due_at: int | None = None
        self._new: set[str] = set()
        self._new_tasks: set[TaskKey] = set()
        self._new_timers: dict[tuple[str, int], TimerRow] = {}

    # --- looking up ---

    def execution(self, org: str, execution_id: str) -> Execution:
        found = self.loaded.executions.get(execution_id)
        if found is None or found.org != org:
            raise ExecutionNotFound(
                f"no execution {execution_id!r} in org {org!r}: check the id; list_workflows() shows what there is",
                execution_id=execution_id,
            )
        return found

    def task(self, org: str, key: TaskKey, token: Token) -> TaskRow:
        """The task, if `token` is that of its running attempt."""
        row = self.loaded.tasks.get(key)
        if (
            row is None
            or row.org != org
            or row.attempt != token.epoch
            or row.nonce != token.nonce
            or row.worker is None
        ):
            raise StaleAttempt(
                f"attempt {token.epoch} of task {key[1]} of execution {key[0]} is over (finished, timed out, cancelled "
                "or given to another worker); its report was not recorded",
                execution_id=key[0],
                task_no=key[1],
                attempt=token.epoch,
            )
        return row

    def get(self, record: type[R], key: Any) -> R | None:
        """A row of a plain table, if it is there; the plan has to want it."""
        return self.loaded.row(record, key)

    def group(self, record: type[R], *prefix: Any) -> list[R]:
        """All rows of a plain table whose keys begin so; the plan has to want them."""
        return self.loaded.group(record, *prefix)

    # --- changing ---

    def put(self, record: Any) -> None:
        """Write a row of a plain table."""
        kind = type(record)
        key = table_of(kind).key_of(record)
        self.loaded.rows.setdefault(kind, {})[key] = record
        self.changes.put(record)
        for prefix, rows in self.loaded.groups.get(kind, {}).items():
            if key[: len(prefix)] == prefix:
                rows[:] = [row for row in rows if table_of(kind).key_of(row) != key] + [record]

    def drop(self, record: type[Any], key: Any) -> None:
        """Delete a row of a plain table, if it is there."""
        self.loaded.rows.get(record, {}).pop(key, None)
        self.changes.drop(record, key)

    def add_execution(self, execution: Execution) -> None:
        self.loaded.executions[execution.id] = execution
        self.changes.new_executions.append(execution)
        self._new.add(execution.id)

    def touch(self, execution: Execution) -> None:
        if execution.id not in self._new:
            self.changes.changed_executions[execution.id] = execution

    def turn(self, execution: Execution) -> None:
        """Its state, or what goes with that, has changed: `touch`, and more than `touch`."""
        self.touch(execution)
        self.changes.turned.add(execution.id)

    def touch_ready(self, execution: Execution) -> None:
        self.changes.ready[execution.id] = execution

    def append(self, execution: Execution, body: EventBody) -> HistoryEvent:
        """The next event of the execution. Event times never decrease, whatever the clock does."""
        seq = execution.last_seq + 1
        before = execution.updated_at
        at = self.now if self.now > before else before  # noqa: FURB136 - of all calls the commonest, and max() is slow
        execution.last_seq = seq
        execution.updated_at = at
        event = HistoryEvent(seq, at, body)
        execution_id = execution.id
        self.changes.events.append((execution_id, event))
        tail = self.appended.get(execution_id)
        if tail is None:
            self.appended[execution_id] = [event]
        else:
            tail.append(event)
        if execution_id not in self._new:
            self.changes.changed_executions[execution_id] = execution
        return event

    def add_task(self, task: TaskRow) -> None:
        key = (task.execution_id, task.task_no)
        self._new_tasks.add(key)
        self.loaded.tasks[key] = task
        self.changes.new_tasks.append(task)

    def touch_task(self, task: TaskRow) -> None:
        key = (task.execution_id, task.task_no)
        if key not in self._new_tasks:
            self.changes.changed_tasks[key] = task

    def drop_task(self, task: TaskRow) -> None:
        key = (task.execution_id, task.task_no)
        self.loaded.tasks.pop(key, None)
        self.changes.changed_tasks.pop(key, None)
        if key in self._new_tasks:
            self._new_tasks.discard(key)
            self.changes.new_tasks.remove(task)
        else:
            self.changes.deleted_tasks.append(key)

    def add_timer(self, execution: Execution, timer: TimerRow) -> None:
        execution.open_timers += 1
        self.loaded.timers[timer.execution_id, timer.timer_no] = timer
        self._new_timers[timer.execution_id, timer.timer_no] = timer
        self.changes.new_timers.append(timer)
        self.expect(timer.fire_at)

    def drop_timer(self, execution: Execution, timer_no: int) -> bool:
        """Whether the timer was still there: a fired one is not."""
        key = (execution.id, timer_no)
        if self.loaded.timers.pop(key, None) is None:
            return False
        execution.open_timers -= 1
        self.touch(execution)
        fresh = self._new_timers.pop(key, None)
        if fresh is None:
            self.changes.deleted_timers.append(key)
        else:
            self.changes.new_timers.remove(fresh)
        return True

    def forget_timer(self, execution: Execution, timer_no: int) -> None:
        """As `drop_timer`, for a timer that is known to run though it was not loaded."""
        key = (execution.id, timer_no)
        self.loaded.timers.setdefault(
            key, TimerRow(execution_id=execution.id, timer_no=timer_no, org=execution.org, fire_at=0)
        )
        self.drop_timer(execution, timer_no)

    def add_token(self, token: TokenRow) -> None:
        self.put(token)

    def add_wait(self, execution: Execution, wait: SubscriptionRow) -> None:
        execution.open_waits += 1
        self.touch(execution)
        self.loaded.subscriptions[wait.id] = wait
        self.loaded.waits[wait.execution_id, wait.wait_no] = wait.id
        self.changes.new_subscriptions[wait.id] = wait
        demand = None if wait.eq_path is None or wait.eq_value is None else (wait.eq_path, wait.eq_value)
        fresh = self.fresh_waits.setdefault((wait.org, wait.kind, wait.key), {})
        fresh.setdefault(demand, []).append(wait.id)

    def drop_wait(self, execution: Execution, wait_no: int) -> None:
        """The wait is over, if it was still there."""
        number = self.loaded.waits.pop((execution.id, wait_no), None)
        if number is None:
            return
        del self.loaded.subscriptions[number]
        # A row put back by hand must not take the whole page with it.
        execution.open_waits = max(execution.open_waits - 1, 0)
        self.touch(execution)
        if self.changes.new_subscriptions.pop(number, None) is None:
            self.changes.deleted_subscriptions.append(number)

    def expect(self, at: int | None) -> None:
        """Something becomes due at this instant: the services should look then."""
        if at is not None and (self.due_at is None or at < self.due_at):
            self.due_at = at

    def run_afterwards(self) -> None:
        """What was put off until the rows of a turn are written."""
        for put_off in (self.looking_back, self.afterwards):
            for effect in put_off:
                effect()
            put_off.clear()

    def close_outcome(self, execution: Execution, event: HistoryEvent) -> None:
        self.closed.append(((execution.org, execution.id), Outcome(CLOSED_STATUS[execution.state], event)))
