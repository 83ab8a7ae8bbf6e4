"""A history as it was: the turns that had been recorded by an event, whole, and nothing after."""

import pytest

from holdfast import WorkflowContext, workflow
from holdfast.model import events as e
from holdfast.replay.views import as_of, is_closed
from tests.replay.recording import replayed

STARTED = e.WorkflowStarted(kind="k", workflow_id="w")


def history(*bodies: e.EventBody) -> list[e.HistoryEvent]:
    return [e.HistoryEvent(seq, 1_000 * seq, body) for seq, body in enumerate(bodies, 1)]


def numbers(events: list[e.HistoryEvent]) -> list[int]:
    return [event.seq for event in events]


MIXED = history(
    STARTED,
    e.SignalReceived(signal_name="hi"),
    e.SignalReceived(signal_name="bye"),
    e.TaskScheduled(up_to=2, task_no=1, kind="reply"),
    e.TimerStarted(up_to=2, timer_no=1, fire_at=9_000_000),
    e.TaskCompleted(task_no=1),
    e.TurnCompleted(up_to=3),
    e.TaskScheduled(up_to=6, task_no=2, kind="reply"),
    e.TurnCompleted(up_to=6),
)


@pytest.mark.parametrize(
    ("seq", "expected"),
    [
        (1, [1]),
        (3, [1, 2, 3]),
        (4, [1, 2, 3, 4, 5]),
        (5, [1, 2, 3, 4, 5]),
        (6, [1, 2, 3, 4, 5, 6]),
        (7, [1, 2, 3, 4, 5, 6, 7]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (9, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ],
)
def test_a_turn_is_there_whole_once_one_of_its_rows_is(seq, expected):
    """Its later rows come with the first; rows of other turns and later news do not."""
    assert expected == numbers(as_of(MIXED, seq))


def test_a_step_that_finished_later_is_not_part_of_its_turn():
    """The row carries the number of the turn that asked for the step, but its result is news of a later moment."""
    steps = history(
        STARTED,
        e.TaskScheduled(up_to=1, task_no=1, kind="t"),
        e.StepCompleted(up_to=1, step_no=1, name="s"),
        e.TurnCompleted(up_to=3),
    )

    assert [1, 2] == numbers(as_of(steps, 2))
    assert [1, 2, 3] == numbers(as_of(steps, 3))


@pytest.mark.parametrize(("last", "closed"), [(e.WorkflowCompleted(up_to=1), True), (e.CancelRequested(), False)])
def test_a_history_is_closed_by_its_last_event(last, closed):
    """Only an end ends it; an empty one is open."""
    assert closed is is_closed(history(STARTED, last))
    assert not is_closed([])


@workflow
async def collect(ctx: WorkflowContext) -> list[object]:
    return [await ctx.wait_for_signal("item") for _ in range(3)]


async def test_every_moment_of_a_real_history_can_be_recreated(engine):
    """Cut anywhere, also inside a commit, the selection replays without a mismatch, up to the last turn it holds."""
    client = (await engine(workflows=[collect])).client
    handle = await client.start_workflow(collect)
    for item in range(3):
        await handle.signal("item", item)
    await handle.result(timeout=10)
    whole = await handle.history()

    for seq in range(1, len(whole) + 1):
        machine = replayed(collect, as_of(whole, seq), handle.id)
        turns = {event.body.up_to for event in whole[:seq] if isinstance(event.body, e.TurnEvent)}
        assert max(turns, default=0) == machine.up_to
        machine.close()
