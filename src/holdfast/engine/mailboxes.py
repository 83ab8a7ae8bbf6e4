"""What an execution has not read: for people who look from outside.

Which signals an open execution has left in its queues is known to its program alone, so a worker with the code is
asked, as by a query. Without one, what can be told is what no turn has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from holdfast.contract.calls import QueryExecution
from holdfast.contract.executions import DeadLetterUnread, MailboxAnswer, UnreadSignal
from holdfast.engine.executions.dead_letter_unread import DeadLetterUnreadSignals
from holdfast.errors import ExecutionOpen, NoWorker, QueryFailed, UnknownQuery
from holdfast.model.events import HistoryEvent, SignalReceived
from holdfast.model.executions import DeadLetter, Execution

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine

QUERY = "__mailbox__"
PAGE = 1_000
_NUMBERS = msgspec.json.Decoder(list[tuple[int, str]])


class Mailboxes:
    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._store = engine.store

    async def read(self, execution: Execution, limit: int) -> MailboxAnswer:
        """The oldest unread signals of an open execution; the dead letters of a closed one."""
        now = self._store.clock()
        if not execution.is_open:
            return await self._dead(execution, limit, now)
        queued = await self._queued(execution)
        if queued is None:
            unseen = await self._signals(execution, execution.seen_seq)
            signals, complete = [_unread(event, now) for event in unseen], False
            counts = _counted(signal.signal_name for signal in signals)
            signals = signals[:limit]
        else:
            found = await self._events(execution, [seq for seq, _ in queued[:limit]])
            signals, complete = [_unread(event, now) for event in found], True
            counts = _counted(name for _, name in queued)
        return MailboxAnswer(
            workflow_execution_id=execution.id, signals=tuple(signals), counts=counts, complete=complete
        )

    async def dead_letter(self, request: DeadLetterUnread, execution: Execution) -> int:
        if execution.is_open:
            raise ExecutionOpen(
                f"execution {execution.id} ({execution.workflow_id}) is open: it may still read its signals",
                execution_id=execution.id,
            )
        if execution.successor is not None:
            return 0  # which has taken them over
        queued = await self._ask(execution)
        unseen = [event.seq for event in await self._signals(execution, execution.seen_seq)]
        seqs = sorted({*unseen, *(seq for seq, _ in queued)})
        return await self._engine.queue.submit(DeadLetterUnreadSignals(request, seqs)) if seqs else 0

    async def _queued(self, execution: Execution) -> list[tuple[int, str]] | None:
        try:
            return await self._ask(execution)
        except (NoWorker, QueryFailed, UnknownQuery):
            return None

    async def _ask(self, execution: Execution) -> list[tuple[int, str]]:
        request = QueryExecution(org=execution.org, workflow_execution_id=execution.id, query_name=QUERY)
        return _NUMBERS.decode(await self._engine.queries.ask(request, execution))

    async def _dead(self, execution: Execution, limit: int, now: int) -> MailboxAnswer:
        letters = await self._store.dead_letters(execution.org, execution.id, self._engine.config.limits.page_size)
        oldest = letters[::-1]
        return MailboxAnswer(
            workflow_execution_id=execution.id,
            signals=tuple(_dead_lettered(letter, now) for letter in oldest[:limit]),
            counts=_counted(letter.signal_name for letter in oldest),
            complete=True,
        )

    async def _events(self, execution: Execution, seqs: Sequence[int]) -> list[HistoryEvent]:
        wanted, found = set(seqs), list[HistoryEvent]()
        after = min(wanted, default=0) - 1
        while wanted:
            page = await self._store.history(execution.org, execution.id, after, PAGE, (SignalReceived.TYPE,))
            found += [event for event in page if event.seq in wanted]
            wanted.difference_update(event.seq for event in page)
            if len(page) < PAGE:
                break
            after = page[-1].seq
        return found

    async def _signals(self, execution: Execution, after: int) -> list[HistoryEvent]:
        return await self._store.history(execution.org, execution.id, after, None, (SignalReceived.TYPE,))


def _unread(event: HistoryEvent, now: int) -> UnreadSignal:
    body = event.body
    assert isinstance(body, SignalReceived), "read by type"
    return UnreadSignal(
        seq=event.seq,
        signal_name=body.signal_name,
        signal_value=body.signal_value,
        received_at=event.at,
        age=max(now - event.at, 0),
        sender=body.sender,
    )


def _dead_lettered(letter: DeadLetter, now: int) -> UnreadSignal:
    return UnreadSignal(
        seq=letter.seq,
        signal_name=letter.signal_name,
        signal_value=letter.signal_value,
        received_at=letter.received_at,
        age=max(now - letter.received_at, 0),
        reason=letter.reason,
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts
