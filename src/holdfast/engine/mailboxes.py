"""What an execution has not read: for people who look from outside.

Which signals an open execution has left in its queues is known to its program alone, so a worker with the code is
asked, as by a query. Without one, what can be told is what no turn has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import structs

from holdfast.config import Limits
from holdfast.contract.calls import QueryExecution
from holdfast.contract.instants import instant
from holdfast.contract.mailboxes import (
    Buried,
    BuryUnread,
    DeadLetter,
    DeadLetterList,
    GetMailbox,
    ListDeadLetters,
    ListDeadLettersOf,
    Mailbox,
    MailboxEntry,
    Redelivered,
    RedeliverSignal,
)
from holdfast.engine.api import answers
from holdfast.engine.execution_reads import ExecutionReads
from holdfast.engine.executions.bury_unread import Bury
from holdfast.engine.executions.redeliver import Redeliver
from holdfast.engine.queries import Queries
from holdfast.engine.unit_of_work import OperationQueue
from holdfast.errors import ExecutionOpen, NoWorker, QueryFailed, UnknownQuery
from holdfast.model.events import HistoryEvent, SignalReceived
from holdfast.model.executions import DeadLetter as DeadLetterRow
from holdfast.model.executions import Execution
from holdfast.model.values import MICRO
from holdfast.store import reads
from holdfast.store.protocol import Store

QUERY = "__mailbox__"
PAGE = 1_000
_NUMBERS = msgspec.json.Decoder(list[tuple[int, str]])


class Mailboxes:
    def __init__(
        self, store: Store, queue: OperationQueue, queries: Queries, executions: ExecutionReads, limits: Limits
    ) -> None:
        self._store = store
        self._queue = queue
        self._queries = queries
        self._executions = executions
        self._limits = limits

    @answers(GetMailbox)
    async def look(self, request: GetMailbox) -> Mailbox:
        """The oldest unread signals of an open execution; the dead letters of a closed one."""
        execution, limit = await self._executions.row(request.org, request.workflow_execution_id), request.limit
        now = self._store.clock()
        if not execution.is_open:
            return await self._dead(execution, limit, now)
        queued = await self._queued(execution)
        if queued is None:
            unseen = await self._signals(execution, execution.seen_seq)
            entries, complete = [_unread(event, now) for event in unseen], False
            counts = _counted(entry.signal_name for entry in entries)
            entries = entries[:limit]
        else:
            found = await self._events(execution, [seq for seq, _ in queued[:limit]])
            entries, complete = [_unread(event, now) for event in found], True
            counts = _counted(name for _, name in queued)
        return Mailbox(workflow_execution_id=execution.id, entries=tuple(entries), counts=counts, complete=complete)

    @answers(BuryUnread)
    async def bury(self, request: BuryUnread) -> Buried:
        execution = await self._executions.row(request.org, request.workflow_execution_id)
        if execution.is_open:
            raise ExecutionOpen(
                f"execution {execution.id} ({execution.workflow_id}) is open: it may still read its signals",
                execution_id=execution.id,
            )
        if execution.successor is not None:
            return Buried(0)  # which has taken them over
        queued = await self._ask(execution)
        unseen = [event.seq for event in await self._signals(execution, execution.seen_seq)]
        seqs = sorted({*unseen, *(seq for seq, _ in queued)})
        return Buried(await self._queue.submit(Bury(request, seqs)) if seqs else 0)

    @answers(ListDeadLetters)
    async def dead_letters(self, request: ListDeadLetters) -> DeadLetterList:
        return await self._letters(request.org, None, request.limit)

    @answers(ListDeadLettersOf)
    async def dead_letters_of(self, request: ListDeadLettersOf) -> DeadLetterList:
        found = await self._letters(request.org, request.workflow_execution_id, request.limit)
        if not found.dead_letters:
            await self._executions.row(request.org, request.workflow_execution_id)
        return found

    async def _letters(self, org: str, execution_id: str | None, limit: int) -> DeadLetterList:
        letters = await self._store.read(reads.DeadLetters(org, execution_id, limit))
        now = self._store.clock()
        return DeadLetterList(dead_letters=tuple(_letter(row, now) for row in letters), now=instant(now))

    @answers(RedeliverSignal)
    async def redeliver(self, request: RedeliverSignal) -> Redelivered:
        if request.to is None:
            source = await self._executions.row(request.org, request.workflow_execution_id)
            request = structs.replace(request, to=source.workflow_id)
        return await self._queue.submit(Redeliver(request))

    async def _queued(self, execution: Execution) -> list[tuple[int, str]] | None:
        try:
            return await self._ask(execution)
        except (NoWorker, QueryFailed, UnknownQuery):
            return None

    async def _ask(self, execution: Execution) -> list[tuple[int, str]]:
        request = QueryExecution(org=execution.org, workflow_execution_id=execution.id, query_name=QUERY)
        return _NUMBERS.decode(await self._queries.ask(request, execution))

    async def _dead(self, execution: Execution, limit: int, now: int) -> Mailbox:
        letters = await self._store.read(reads.DeadLetters(execution.org, execution.id, self._limits.page_size))
        oldest = letters[::-1]
        return Mailbox(
            workflow_execution_id=execution.id,
            entries=tuple(_buried(letter, now) for letter in oldest[:limit]),
            counts=_counted(letter.signal_name for letter in oldest),
            complete=True,
        )

    async def _events(self, execution: Execution, seqs: Sequence[int]) -> list[HistoryEvent]:
        wanted, found = set(seqs), list[HistoryEvent]()
        after = min(wanted, default=0) - 1
        while wanted:
            page = await self._store.read(
                reads.History(execution.org, execution.id, after, PAGE, (SignalReceived.TYPE,))
            )
            found += [event for event in page if event.seq in wanted]
            wanted.difference_update(event.seq for event in page)
            if len(page) < PAGE:
                break
            after = page[-1].seq
        return found

    async def _signals(self, execution: Execution, after: int) -> list[HistoryEvent]:
        return await self._store.read(reads.History(execution.org, execution.id, after, None, (SignalReceived.TYPE,)))


def _unread(event: HistoryEvent, now: int) -> MailboxEntry:
    body = event.body
    assert isinstance(body, SignalReceived), "read by type"
    return MailboxEntry(
        seq=event.seq,
        signal_name=body.signal_name,
        signal_value=body.signal_value,
        received_at=instant(event.at),
        age_s=max(now - event.at, 0) / MICRO,
        sender=body.sender,
    )


def _buried(letter: DeadLetterRow, now: int) -> MailboxEntry:
    return MailboxEntry(
        seq=letter.seq,
        signal_name=letter.signal_name,
        signal_value=letter.signal_value,
        received_at=instant(letter.received_at),
        age_s=max(now - letter.received_at, 0) / MICRO,
        reason=letter.reason,
    )


def _letter(row: DeadLetterRow, now: int) -> DeadLetter:
    return DeadLetter(
        execution_id=row.execution_id,
        seq=row.seq,
        signal_name=row.signal_name,
        signal_value=row.signal_value,
        reason=row.reason,
        received_at=instant(row.received_at),
        buried_at=instant(row.at),
        age_s=max(now - row.received_at, 0) / MICRO,
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts
