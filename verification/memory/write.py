"""Writes the changes of a batch: checked first, so that what is refused has changed nothing."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from msgspec import structs

from holdfast.errors import StorageError
from holdfast.model.events import SignalReceived
from holdfast.model.executions import OPEN_STATES, DeadLetter, Execution
from holdfast.store.protocol import Changes
from verification.memory.database import MemoryDatabase, copied
from verification.memory.deletions import write_deletions
from verification.memory.keys import check_keys, write_keys, write_pauses

_COUNTS: Final = (
    "last_seq",
    "seen_seq",
    "call_seq",
    "signal_count",
    "open_tasks",
    "open_timers",
    "open_children",
    "open_waits",
    "epoch",
    "crashes",
    "close_rounds",
)
_counts: Final = attrgetter(*_COUNTS)
_KEYS: Final = ("orgs", "new_orgs", "keys", "audit", "pauses", "deleted_pauses", "deleted_workers")
_TASKS: Final = (
    "new_tasks",
    "changed_tasks",
    "deleted_tasks",
    "output",
    "trimmed_output",
    "new_timers",
    "deleted_timers",
    "purge",
)
_MESSAGES: Final = (
    "last_id",
    "promises",
    "tokens",
    "new_subscriptions",
    "deleted_subscriptions",
    "purge_waits",
    "deliveries",
    "published",
    "deleted_published",
    "event_keys",
    "dead_events",
    "replayed_dead_events",
    "untriggered",
    "triggers",
)
_EXECUTION_ROWS: Final = (
    "new_executions",
    "changed_executions",
    "turned",
    "metadata",
    "ready",
    "events",
    "workflow_keys",
)
_of_keys: Final = attrgetter(*_KEYS)
_of_tasks: Final = attrgetter(*_TASKS)
_of_messages: Final = attrgetter(*_MESSAGES)
_of_others: Final = attrgetter(
    "deleted_workers",
    *(name for name in Changes.__struct_fields__ if name not in {*_EXECUTION_ROWS, *_KEYS, *_TASKS, *_MESSAGES}),
)
"""What each part of a write is about: most batches need few of them. A field that is in no list is among the others."""
_PAGE: Final = 10_000
_KEEP_DELIVERIES: Final = 24 * 3600 * 1_000_000


def write(database: MemoryDatabase, changes: Changes, now: int) -> None:
    """All of it or nothing. Deletes come after inserts: a row made and finished in the same batch must not stay."""
    _check(database, changes)
    if changes.keys or changes.audit:
        check_keys(database, changes)
    _write_executions(database, changes)
    for execution_id, event in changes.events:
        database.events.setdefault(execution_id, {})[event.seq] = event
    database.workflow_keys.update(changes.workflow_keys)
    if any(_of_keys(changes)):
        write_keys(database, changes)
        write_pauses(database, changes)
    if any(_of_tasks(changes)):
        _write_tasks(database, changes)
    if any(_of_messages(changes)):
        _write_messages(database, changes)
        _write_events(database, changes)
    if any(_of_others(changes)):
        _write_rare(database, changes)
        _dead_letter(database, changes, now)
        write_deletions(database, changes)
    database.commits += 1


def _refuse(what: str) -> StorageError:
    return StorageError(f"the memory store refuses {what}; nothing was written")


# --- what a database would refuse ----------------------------------------------------------------------------------


def _check(database: MemoryDatabase, changes: Changes) -> None:
    new = [execution.id for execution in changes.new_executions]
    if new:
        _check_new("execution", new, database.execution_rows)
    if changes.new_tasks:
        _check_new("task", [(task.execution_id, task.task_no) for task in changes.new_tasks], database.tasks)
    if changes.new_timers:
        _check_new("timer", [(timer.execution_id, timer.timer_no) for timer in changes.new_timers], database.timers)
    if changes.new_subscriptions:
        _check_new("subscription", list(changes.new_subscriptions), database.subscriptions)
    numbers: set[tuple[str, int]] = set()
    for execution_id, event in changes.events:
        known = database.events.get(execution_id)
        at = (execution_id, event.seq)
        if event.seq < 1 or at in numbers or (known is not None and event.seq in known):
            raise _refuse(f"event {event.seq} of execution {execution_id}: the number is taken")
        numbers.add(at)
    made = set(new)
    for execution in changes.new_executions:
        _check_execution_row(execution)
    for execution_id, execution in changes.changed_executions.items():
        if execution_id not in made and execution_id not in database.execution_rows:
            raise _refuse(f"a change of execution {execution_id}, which does not exist")
        _check_execution_row(execution)


def _check_new(what: str, keys: Sequence[object], table: object) -> None:
    if len(set(keys)) != len(keys) or any(key in table for key in keys):  # type: ignore[operator]  # a dict
        raise _refuse(f"a second {what} of the same number among {keys}")


def _check_execution_row(execution_row: Execution) -> None:
    """The same rules as the CHECKs of the SQL stores."""
    if min(_counts(execution_row)) < 0:
        raise _refuse(f"a count below 0 of execution {execution_row.id}")
    if execution_row.seen_seq > execution_row.last_seq or execution_row.call_seq > execution_row.last_seq:
        raise _refuse(f"execution {execution_row.id}, which has seen more than there is")
    if (execution_row.closed_at is None) != (execution_row.state in OPEN_STATES):
        raise _refuse(f"execution {execution_row.id}, closed at {execution_row.closed_at} and {execution_row.state}")


# --- writing ------------------------------------------------------------------------------------------------------


def _write_executions(database: MemoryDatabase, changes: Changes) -> None:
    execution_rows = database.execution_rows
    made = set()
    for execution in changes.new_executions:
        made.add(execution.id)
        execution_row = copied(execution)
        execution_row.ready = None
        execution_row.metadata = dict(execution_row.metadata) if execution_row.metadata is not None else None
        execution_rows[execution_row.id] = execution_row
    for execution_id, execution in changes.changed_executions.items():
        if execution_id in made:
            continue
        if execution_id in changes.state_changed:
            execution_rows[execution_id] = _turned(execution_rows[execution_id], execution)
        else:
            _advance(execution_rows[execution_id], execution)
    for execution_id, execution in changes.ready.items():
        if execution.ready is None:
            database.ready.pop(execution_id, None)
        else:
            database.ready[execution_id] = copied(execution.ready)


def _advance(execution_row: Execution, execution: Execution) -> None:
    """What changes of a head while its state stays: nothing else of it is written."""
    execution_row.updated_at = execution.updated_at
    execution_row.last_seq = execution.last_seq
    execution_row.seen_seq = execution.seen_seq
    execution_row.call_seq = execution.call_seq
    execution_row.signal_count = execution.signal_count
    execution_row.open_tasks = execution.open_tasks
    execution_row.open_timers = execution.open_timers
    execution_row.open_children = execution.open_children
    execution_row.open_waits = execution.open_waits
    execution_row.epoch = execution.epoch
    execution_row.nonce = execution.nonce
    execution_row.close_rounds = execution.close_rounds
    execution_row.cancel_requested = execution.cancel_requested
    execution_row.waiting_for = execution.waiting_for


def _turned(before: Execution, execution: Execution) -> Execution:
    """Everything changes but where it comes from."""
    execution_row = copied(execution)
    execution_row.id = before.id
    execution_row.org = before.org
    execution_row.workflow_id = before.workflow_id
    execution_row.kind = before.kind
    execution_row.created_at = before.created_at
    execution_row.ready = None
    execution_row.metadata = dict(execution_row.metadata) if execution_row.metadata is not None else None
    return execution_row


def _write_tasks(database: MemoryDatabase, changes: Changes) -> None:
    tasks, timers = database.tasks, database.timers
    for task in changes.new_tasks:
        tasks[task.execution_id, task.task_no] = copied(task)
    for at, task in changes.changed_tasks.items():
        tasks[at] = copied(task)
    for at in changes.deleted_tasks:
        tasks.pop(at, None)
    for row in changes.kept_output():
        database.output.setdefault((row.execution_id, row.task_no), {})[row.seq] = row
    for at, trimmed in changes.trimmed_output.items():
        kept = database.output.get(at, {})
        for seq in [seq for seq in kept if seq <= trimmed]:
            del kept[seq]
    for timer in changes.new_timers:
        timers[timer.execution_id, timer.timer_no] = timer
    for at in changes.deleted_timers:
        timers.pop(at, None)
    if changes.purge:
        gone = set(changes.purge)
        for table in (tasks, timers):
            for at in [at for at in table if at[0] in gone]:
                del table[at]


def _write_messages(database: MemoryDatabase, changes: Changes) -> None:
    if changes.last_id is not None:
        database.last_id = max(database.last_id, changes.last_id)
    for key, promise in changes.promises.items():
        database.promises[key] = copied(promise)
    for token in changes.tokens:
        database.tokens.setdefault(token.token_hash, token)
    waits = database.subscriptions
    waits.update(changes.new_subscriptions)
    for number in changes.deleted_subscriptions:
        waits.pop(number, None)
    if changes.purge_waits:
        gone = set(changes.purge_waits)
        for number in [number for number, wait in waits.items() if wait.execution_id in gone]:
            del waits[number]
    for number, delivery in changes.deliveries.items():
        database.deliveries[number] = copied(delivery)


def _write_events(database: MemoryDatabase, changes: Changes) -> None:
    for number, event in changes.published.items():
        database.published[number] = copied(event)
    for number in changes.deleted_published:
        database.published.pop(number, None)
    for key, counted in changes.event_keys.items():
        database.event_keys[key] = copied(counted)
    for dead in changes.dead_events:
        database.dead_events.setdefault(dead.id, dead)
    for number in changes.replayed_dead_events:
        database.dead_events.pop(number, None)
    for at in [at for at in database.triggers if (at[0], at[2]) in changes.untriggered]:
        del database.triggers[at]
    for trigger in changes.triggers:
        database.triggers[trigger.org, trigger.key, trigger.kind] = trigger


def _write_rare(database: MemoryDatabase, changes: Changes) -> None:
    for worker in changes.workers.values():
        database.workers[worker.id] = copied(worker)
    for session in changes.deleted_workers:
        database.workers.pop(session, None)
    for row in changes.definitions:
        database.definitions[row.org, row.kind, row.version] = row
    for at in changes.deleted_requests:
        database.requests.pop(at, None)
    for request in changes.requests:
        database.requests[request.org, request.request_id] = request
    if changes.forget_dead_before is not None:
        old = sorted(
            (dead.at, key) for key, dead in database.dead_events.items() if dead.at < changes.forget_dead_before
        )
        for _, key in old[:_PAGE]:
            del database.dead_events[key]
    if changes.forget_messages_before is not None:
        _forget_messages(database, changes.forget_messages_before)


def _forget_messages(database: MemoryDatabase, before: int) -> None:
    promises = database.promises
    for key in [
        key for key, row in promises.items() if not row.promise_no and (row.expires_at or before + 1) <= before
    ]:
        del promises[key]
    for number, row in list(database.deliveries.items()):
        asked = (row.org, row.idempotency_key or "") in database.requests
        if row.done_at is not None and row.done_at < before - _KEEP_DELIVERIES and not asked:
            del database.deliveries[number]


def _dead_letter(database: MemoryDatabase, changes: Changes, now: int) -> None:
    letters = database.dead_letters
    for letter in changes.dead_letters:
        letters.setdefault((letter.execution_id, letter.seq), letter)
    for execution_id, after, reason in changes.dead_letter:
        execution_row = database.execution_rows[execution_id]
        for event in database.history(execution_id):
            if event.seq > after and isinstance(event.body, SignalReceived):
                letter = DeadLetter(
                    execution_id=execution_id, seq=event.seq, org=execution_row.org, reason=reason, at=now
                )
                letters.setdefault((execution_id, event.seq), letter)
    for at in changes.settled_letters:
        if at in letters:
            letters[at] = structs.replace(letters[at], settled=True)
