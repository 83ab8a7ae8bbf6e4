"""Snapshots that come with a turn: stored with it or not at all, gone when the execution closes."""

from typing import Any

import pytest

from holdfast.contract import workers as wk
from holdfast.errors import InvalidRequest, PayloadTooLarge, StaleClaim
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.snapshots import SNAPSHOT_BYTES, Snapshot
from holdfast.model.values import NULL, Token, Wait
from holdfast.store import reads
from tests.conftest import OpenEngine
from tests.unit.engine.test_leases import Hand

ON_SIGNAL = (Wait("signal", "go"),)


def a_snapshot(work: wk.TurnWork, **fields: Any) -> Snapshot:
    defaults = {
        "org": "default",
        "execution_id": work.execution_id,
        "up_to": work.last_seq,
        "version": "1",
        "build": "b",
        "state": b"s",
    }
    return Snapshot(**{**defaults, **fields})


class Stage:
    """An execution at its first turn, held by a worker that the test plays."""

    def __init__(self, engine: Any, hand: Hand, work: wk.TurnWork) -> None:
        self.store = engine.storage
        self.client = engine.client
        self.hand = hand
        self.work = work

    async def stored(self) -> Snapshot | None:
        found: Snapshot | None = await self.store.read(reads.Row(Snapshot, self.work.execution_id, "default"))
        return found


@pytest.fixture
async def stage(engine: OpenEngine) -> Stage:
    running = await engine()
    hand = await Hand(running, "played").register()
    await running.client.start_workflow("k")
    return Stage(running, hand, await hand.get(wk.TurnWork))


async def test_a_snapshot_is_stored_with_its_turn(stage: Stage):
    """A later turn replaces it; one without a snapshot leaves it."""
    first = a_snapshot(stage.work)
    await stage.hand.commit(stage.work, snapshot=first, waiting_for=ON_SIGNAL)
    assert first == await stage.stored()

    await stage.client.signal_workflow(stage.work.execution_id, "go")
    work = await stage.hand.get(wk.TurnWork)
    await stage.hand.commit(work, waiting_for=ON_SIGNAL)
    assert first == await stage.stored()

    await stage.client.signal_workflow(stage.work.execution_id, "go")
    work = await stage.hand.get(wk.TurnWork)
    second = a_snapshot(work, state=b"t")
    await stage.hand.commit(work, snapshot=second, waiting_for=ON_SIGNAL)
    assert second == await stage.stored()


async def test_a_refused_turn_stores_nothing(stage: Stage):
    """Somebody else holds the execution."""
    with pytest.raises(StaleClaim):
        await stage.hand.commit(stage.work, snapshot=a_snapshot(stage.work), token=Token(9, 9))
    assert await stage.stored() is None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"execution_id": "another"}, InvalidRequest),
        ({"up_to": 0}, InvalidRequest),
        ({"up_to": 2**63}, InvalidRequest),
        ({"version": ""}, InvalidRequest),
        ({"build": "a\nb"}, InvalidRequest),
        ({"state": bytes(SNAPSHOT_BYTES + 1)}, PayloadTooLarge),
    ],
    ids=["other", "nothing", "far", "version", "build", "large"],
)
async def test_what_can_not_be_stored_is_refused_with_its_turn(
    stage: Stage, fields: dict[str, Any], error: type[Exception]
):
    """Nothing is recorded, and the next try is taken."""
    with pytest.raises(error):
        await stage.hand.commit(stage.work, snapshot=a_snapshot(stage.work, **fields))
    assert await stage.stored() is None
    await stage.hand.commit(stage.work, waiting_for=ON_SIGNAL)


async def test_a_snapshot_of_another_turn_is_not_stored(stage: Stage):
    """It would claim to have seen what it has not."""
    await stage.hand.commit(stage.work, snapshot=a_snapshot(stage.work, up_to=9), waiting_for=ON_SIGNAL)
    assert await stage.stored() is None


async def test_a_snapshot_of_a_turn_ahead_counts_only_if_that_is_recorded(stage: Stage):
    """Not if something came in between, nor while the turn has left no row."""
    step = e.StepCompleted(up_to=1, step_no=1, name="s", result=NULL, finished_at=1)
    ahead = a_snapshot(stage.work, up_to=2)
    given: dict[str, Any] = {"turns": (), "steps": (step,), "after_steps": c.Turn(up_to=2), "snapshot": ahead}
    await stage.hand.commit(stage.work, **given)
    assert await stage.stored() is None

    await stage.client.signal_workflow(stage.work.execution_id, "go")
    late = e.StepCompleted(up_to=1, step_no=2, name="s", result=NULL, finished_at=1)
    given = {"turns": (), "steps": (late,), "after_steps": c.Turn(up_to=3), "base_seq": 2}
    answer = await stage.hand.commit(stage.work, **given, snapshot=a_snapshot(stage.work, up_to=3))
    assert wk.TurnVerdict.STEPS_ONLY is answer.verdict
    assert await stage.stored() is None


async def test_a_turn_ahead_that_ends_the_lease_stores_its_snapshot(stage: Stage):
    """It has left a row then."""
    step = e.StepCompleted(up_to=1, step_no=1, name="s", result=NULL, finished_at=1)
    ahead = a_snapshot(stage.work, up_to=2)
    given: dict[str, Any] = {"turns": (), "steps": (step,), "after_steps": c.Turn(up_to=2), "snapshot": ahead}
    await stage.hand.commit(stage.work, **given, waiting_for=ON_SIGNAL)
    assert ahead == await stage.stored()


async def test_an_end_sent_back_leaves_the_snapshot(stage: Stage):
    """It goes with the end that counts."""
    await stage.hand.commit(stage.work, snapshot=a_snapshot(stage.work), waiting_for=ON_SIGNAL)
    await stage.client.signal_workflow(stage.work.execution_id, "go")
    work = await stage.hand.get(wk.TurnWork)
    await stage.client.signal_workflow(stage.work.execution_id, "unseen")
    gone = a_snapshot(work, state=b"")
    answer = await stage.hand.commit(work, c.CompleteWorkflow(), snapshot=gone)
    assert wk.TurnVerdict.UNREAD is answer.verdict
    assert await stage.stored() is not None

    seen = work.last_seq + 1
    await stage.hand.commit(work, c.CompleteWorkflow(), snapshot=gone, up_to=seen, base_seq=seen)
    assert await stage.stored() is None
