"""Why an execution does not move: findings from facts, each with a next step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from holdfast.cli import words
from holdfast.cli.diagnosis import Examined, Finding, Sessions, findings
from holdfast.contract.execution_reads import ExecutionInfo, PendingTask
from holdfast.contract.instants import instant
from holdfast.contract.messages import WaitInfo
from holdfast.contract.queues import DefinitionInfo, WorkerInfo
from holdfast.engine.execution_info import execution_info, pending_task
from holdfast.model.executions import Execution, Ready, State, TaskRow
from holdfast.model.messages import SubscriptionKind
from holdfast.model.values import MICRO, Failure, RetryPolicy, TaskTimeouts, Wait

NOW = words.now()
HOUR = 3_600 * MICRO
KNOWN = DefinitionInfo(kind="order", version="1", build="b", registered_at=instant(0))
ALIVE = WorkerInfo(id="w-1", host="h", pid=1, started_at=instant(0), lease_until=instant(NOW + HOUR))


def execution(**fields: Any) -> ExecutionInfo:
    row = Execution(
        **{
            "id": "e-1",
            "org": "default",
            "workflow_id": "ORDER 1",
            "kind": "order",
            "version": "1",
            "queue": "default",
            "priority": 0,
            "state": State.OPEN,
            "created_at": NOW - HOUR,
            "updated_at": NOW - HOUR,
            **fields,
        }
    )
    return execution_info(row)


def one(seen: Examined) -> Finding:
    [found] = findings(seen)
    return found


def waiting(*waits: Wait, **facts: Any) -> Examined:
    return Examined(execution(waiting_for=waits), NOW, **facts)


def held_by(worker: str | None, since_at: int = NOW - HOUR) -> ExecutionInfo:
    return execution(ready=Ready(since_at=since_at, worker=worker))


def task(**fields: Any) -> PendingTask:
    row = TaskRow(
        **{
            "execution_id": "e-1",
            "task_no": 1,
            "org": "default",
            "kind": "pack",
            "queue": "heavy",
            "priority": 0,
            "retry": RetryPolicy(),
            "timeouts": TaskTimeouts(),
            "scheduled_at": NOW - HOUR,
            **fields,
        }
    )
    return pending_task(row)


def test_a_worker_that_is_lost_is_found_out():
    """Its lease is over, or nobody knows it; `recover` takes back what it held."""
    lost = WorkerInfo(id="w-1", host="h", pid=1, started_at=instant(0), lease_until=instant(NOW - HOUR))
    for sessions in (Sessions(workers=(lost,)), Sessions()):
        found = one(Examined(held_by("w-1"), NOW, sessions=sessions))
        assert ("bad", "take it back: holdfast recover") == (found.level, found.next)


def test_a_worker_that_works_is_named():
    """A server of an earlier version does not tell which one it is."""
    there = one(Examined(held_by("w-1"), NOW, sessions=Sessions((ALIVE,), alive=(ALIVE,))))
    elsewhere = one(Examined(structs.replace(held_by("w-1"), worker=None), NOW))

    assert ("ok", "ok") == (there.level, elsewhere.level)
    assert there.text.startswith("worker w-1 runs its code")
    assert elsewhere.text.startswith("a worker runs its code")


@pytest.mark.parametrize(
    ("sessions", "level", "says"),
    [
        (Sessions(), "bad", "no worker ever had this kind and version"),
        (Sessions(definitions=(KNOWN,)), "bad", "no worker is connected"),
        (Sessions((ALIVE,), (KNOWN,), (ALIVE,)), "bad", "no worker has taken it"),
        (None, "bad", "no worker has taken it"),
    ],
)
def test_news_nobody_takes_need_a_worker(sessions, level, says):
    """With this kind and version, on this queue."""
    found = one(Examined(held_by(None), NOW, sessions=sessions))

    assert (level, True) == (found.level, says in found.text)
    assert "kind 'order' version '1' on queue 'default'" in found.next


def test_news_of_this_moment_are_nothing_to_worry_about():
    """A worker is about to take them."""
    assert "note" == one(Examined(held_by(None, NOW), NOW)).level


def test_one_that_begins_later_says_when():
    """Also one whose worker has crashed and that is tried again."""
    later = execution(ready=Ready(since_at=NOW, not_before_at=NOW + HOUR))
    crashed = execution(ready=Ready(since_at=NOW, not_before_at=NOW + HOUR), crashes=2)

    assert ("note", True) == (one(Examined(later, NOW)).level, "it begins at" in one(Examined(later, NOW)).text)
    assert "after 2 crashes" in one(Examined(crashed, NOW)).text


def test_a_late_timer_says_that_nothing_runs():
    """One that is not due is no reason to worry."""
    late = one(waiting(Wait("timer", "sleep", 1, "", NOW - HOUR)))
    early = one(waiting(Wait("timer", "sleep", 1, "", NOW + HOUR)))

    assert ("bad", "ok") == (late.level, early.level)
    assert ("1 h late" in late.text, "start a worker" in late.next) == (True, True)


@pytest.mark.parametrize(
    ("row", "level", "says", "step"),
    [
        (task(), "bad", "waits for a worker", "task 'pack' on queue 'heavy'"),
        (task(scheduled_at=NOW), "note", "waits for a worker", "--queue heavy"),
        (task(worker="w-1", attempt=2, started_at=NOW), "ok", "attempt 2, running", ""),
        (
            task(attempt=3, not_before_at=NOW + HOUR, last_failure=Failure(type="OSError", message="no disk")),
            "note",
            "OSError: no disk",
            "tried again by itself",
        ),
        (task(deferred=True, attempt=1, not_before_at=2**62), "ok", "by its token", "holdfast task complete TOKEN"),
        (task(task_no=9), "note", "or is missing", "holdfast recover"),
    ],
)
def test_a_task_says_where_it_stands(row, level, says, step):
    """Queued, running, failing, deferred, gone."""
    found = one(waiting(Wait("task", "pack", 1), tasks=(row,)))

    assert (level, True, True) == (found.level, says in found.text, step in found.next), found


def subscription(kind: SubscriptionKind, **fields: Any) -> WaitInfo:
    return WaitInfo(
        id=1, workflow_execution_id="e-1", wait_no=1, kind=kind, key="order paid", since=instant(NOW), **fields
    )


@pytest.mark.parametrize(
    ("kind", "fields", "step"),
    [
        (SubscriptionKind.EVENT, {}, "holdfast event publish 'order paid' --input JSON"),
        (SubscriptionKind.MESSAGE, {"correlation_key": "K 1"}, "holdfast message 'order paid' 'K 1' --input JSON"),
        (SubscriptionKind.BROADCAST, {}, "holdfast broadcast 'order paid'"),
    ],
)
def test_what_is_published_thrown_or_sent_has_its_command(kind, fields, step):
    """Quoted for a shell."""
    found = one(waiting(Wait(kind.value, "order paid", 1), waits=(subscription(kind, **fields),)))

    assert found.next.endswith(step)


def test_a_child_is_looked_at_next():
    """By its execution id."""
    found = one(waiting(Wait("child", "refund", 2), children={2: "e-2"}))

    assert "look at it: holdfast workflow show e-2" == found.next


def test_everything_that_is_waited_for_is_told():
    """Timers last; a wait for nothing is a fault."""
    seen = waiting(Wait("timer", "timeout", 1, "", NOW + HOUR), Wait("signal", "go"), Wait("condition", "ready"))

    assert ["signal", "condition", "timer"] == [
        next(word for word in ("signal", "condition", "timer") if word in found.text) for found in findings(seen)
    ]
    assert "bad" == one(replace(seen, execution=execution())).level
