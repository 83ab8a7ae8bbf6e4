"""A history that the code does not fit any more, where it is an update that shows it."""

from __future__ import annotations

import pytest

from holdfast import WorkflowContext, update, workflow
from holdfast.errors import DeterminismError
from holdfast.model import events as e
from holdfast.model.values import Failure
from holdfast.testing.histories import replay


@workflow
class Changed:
    async def run(self, ctx: WorkflowContext) -> None:
        await ctx.sleep(1)

    @update
    async def add(self) -> None: ...


def test_the_mismatch_is_told():
    """Not that the program was given up, which is what it comes to."""
    bodies = (
        e.WorkflowStarted(kind="Changed", workflow_id="w"),
        e.TimerStarted(up_to=1, timer_no=1, fire_at=1_000_001),
        e.UpdateRequested(update_id="u", update_name="add"),
        e.UpdateRejected(up_to=3, update_id="u", failure=Failure(type="ValueError")),
    )
    history = [e.HistoryEvent(seq, seq, body) for seq, body in enumerate(bodies, start=1)]

    with pytest.raises(DeterminismError):
        replay(Changed, history)
