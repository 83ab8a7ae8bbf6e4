"""A task's context without an engine."""

from __future__ import annotations

import pytest

from holdfast import TaskContext, task
from holdfast.errors import PayloadNotEncodable
from holdfast.testing import MockTaskContext


@task
def copy(ctx: TaskContext, rows: int) -> int:
    done = ctx.last_details(int) or 0
    for row in range(done, rows):
        if ctx.is_cancelled:
            return row
        ctx.heartbeat(row + 1, progress=(row + 1) / rows)
    return rows


def test_heartbeats_and_progress_are_kept():
    """What the body reports, in order."""
    ctx = MockTaskContext()

    assert 4 == copy(ctx, 4)
    assert ([1, 2, 3, 4], 1.0) == (ctx.heartbeats, ctx.progress)


def test_what_the_body_says_is_kept():
    """As whoever watches would get it; what can't be said is refused as in the engine."""
    ctx = MockTaskContext()
    ctx.emit({"row": 1})
    with pytest.raises(PayloadNotEncodable):
        ctx.emit(object())

    assert [{"row": 1}] == ctx.emitted


def test_details_of_the_attempt_before_are_there():
    """A body that goes on where it was goes on."""
    ctx = MockTaskContext(details=3, attempt=2)
    copy(ctx, 4)

    assert [4] == ctx.heartbeats


def test_cancelled_body_stops():
    """The flag is the test's to set, with a reason."""
    ctx = MockTaskContext()
    ctx.cancel("timed_out")

    assert 0 == copy(ctx, 4)
    assert "timed_out" == ctx.stop_reason


def test_info_is_what_was_given():
    """Idempotency keys can be tested."""
    ctx = MockTaskContext(kind="copy", workflow_execution_id="e1", task_no=7, attempt=3)

    assert ("copy", 3, "e1/7") == (ctx.info.kind, ctx.info.attempt, ctx.info.idempotency_key)


def test_it_is_a_task_context():
    """Type checkers and the body see the real class."""
    assert isinstance(MockTaskContext(), TaskContext)
