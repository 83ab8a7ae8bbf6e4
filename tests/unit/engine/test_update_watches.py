"""Who waits for an update in one process while another one does it."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Raw

from holdfast.contract.calls import UpdateStatus, UpdateTicket
from holdfast.engine.updates import Updates
from holdfast.model import events as e
from holdfast.store.reads import History

HISTORY = [
    e.HistoryEvent(seq, seq, body)
    for seq, body in enumerate(
        (
            e.WorkflowStarted(kind="k", workflow_id="w"),
            e.UpdateRequested(update_id="u", update_name="add"),
            e.UpdateAccepted(up_to=2, update_id="u"),
            e.UpdateCompleted(up_to=2, update_id="u", result=Raw(b"1")),
            e.WorkflowTerminated(),
        ),
        start=1,
    )
]


class Growing:
    """A store whose history has so many events by now."""

    def __init__(self, known: int) -> None:
        self.known = known
        self.reads = 0

    async def read(self, query: History) -> list[Any]:
        self.reads += 1
        return [event for event in HISTORY[query.after : self.known] if event.type in query.types]


async def test_what_others_have_committed_counts_when_this_process_closes_the_execution() -> None:
    """The end is known here at once, the answer to the update is not: it was given before the end all the same."""
    store = Growing(known=2)
    updates = Updates(store)  # type: ignore[arg-type]  # it reads histories only
    asking = asyncio.ensure_future(updates.outcome("default", UpdateTicket("x", "u", 2), UpdateStatus.COMPLETED))
    while not store.reads:
        await asyncio.sleep(0)

    store.known = 5
    updates.committed({"x": HISTORY[4:]})

    outcome = await asking
    assert (UpdateStatus.COMPLETED, b"1") == (outcome.status, bytes(outcome.result))
