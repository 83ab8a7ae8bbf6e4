"""Whole histories, for programs that are rebuilt: those that are asked for at the same time are one query.

A worker that has just started asks for as many as it has slots. One round trip for each, on the few connections that
there are, would take longer than everything else.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from holdfast.model.events import HistoryEvent
from holdfast.store.postgres.read_session import index_only
from holdfast.store.postgres.readers import Reads
from holdfast.store.postgres.statements import Connection, columns, statement
from holdfast.store.rows import row_to_event

_WHOLE = statement("events", "whole")
_AT_ONCE: Final = 100


class _Call(NamedTuple):
    org: str
    execution_id: str
    after: int
    answer: asyncio.Future[list[HistoryEvent]]


class Histories:
    """Used from one loop. Each call sees what was committed before it asked."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._waiting: list[_Call] = []
        self._task: asyncio.Task[None] | None = None

    async def get(self, org: str, execution_id: str, after: int) -> list[HistoryEvent]:
        answer: asyncio.Future[list[HistoryEvent]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Call(org, execution_id, after, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="holdfast-histories")
        return await answer

    async def _run(self) -> None:
        calls: list[_Call] = []
        try:
            while self._waiting:
                calls, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                await self._answer([call for call in calls if not call.answer.done()])
        finally:
            # Only a loop that is going down ends this early: then nobody is left to answer.
            for call in (*calls, *self._waiting):
                call.answer.cancel()
            self._waiting, self._task = [], None

    async def _answer(self, calls: list[_Call]) -> None:
        try:
            found = await self._reads.run(lambda connection: _fetch(connection, calls)) if calls else []
        except Exception as error:  # noqa: BLE001 - belongs to whoever asked
            for call in calls:
                if not call.answer.done():
                    call.answer.set_exception(error)
            return
        for call, events in zip(calls, found, strict=True):
            if not call.answer.done():
                call.answer.set_result(events)


@index_only
async def _fetch(connection: Connection, calls: list[_Call]) -> list[list[HistoryEvent]]:
    found: list[list[HistoryEvent]] = [[] for _ in calls]
    asked = [(number, call.org, call.execution_id, call.after) for number, call in enumerate(calls)]
    for row in await connection.fetch(_WHOLE, *columns(asked, 4)):
        found[row[0]].append(row_to_event(*row[1:]))
    return found
