"""Questions to programs: which worker is asked, and who waits for its answer.

Nothing of a query is recorded. A worker that goes away leaves its questions to the next one that has the code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import UnsetType

from holdfast.contract.calls import QueryExecution
from holdfast.contract.workers import AnswerQuery, QueryWork
from holdfast.engine.desk import Desk
from holdfast.errors import (
    EngineStopped,
    HoldfastError,
    InvalidRequest,
    NoWorker,
    PayloadNotDecodable,
    PayloadNotEncodable,
    PayloadTooLarge,
    QueryFailed,
    QueryNotReadOnly,
    UnknownQuery,
)
from holdfast.model.executions import Execution
from holdfast.model.values import NULL, Failure, Payload

_PLAIN = {cls.code: cls for cls in (UnknownQuery, PayloadNotDecodable, PayloadNotEncodable, PayloadTooLarge)}


class Queries:
    """All on the event loop."""

    def __init__(self, desk: Desk, entropy: Callable[[], int]) -> None:
        self._desk = desk
        self._entropy = entropy
        self._asked: dict[str, tuple[str, asyncio.Future[AnswerQuery | None]]] = {}

    async def ask(self, request: QueryExecution, execution: Execution) -> Payload:
        check_as_of(request.as_of, execution)
        answer: AnswerQuery | None = None
        while answer is None:
            answer = await self._put(self._worker_for(execution), request, execution)
        if answer.failure is not None:
            raise _error_of(answer.failure, request, execution)
        return answer.result

    def _worker_for(self, execution: Execution) -> str:
        """The session that holds the execution, since its program is live there; else any that has the code."""
        key = (execution.kind, execution.version)
        able = [
            session.id
            for session in self._desk.sessions.values()
            if key in session.request.builds and session.request.org == execution.org and not session.takes_nothing
        ]
        if not able:
            raise NoWorker(
                f"no worker of this process has workflow {execution.kind!r} version {execution.version!r}: open an "
                "Engine with that code in workflows=[...], and ask there",
                kind=execution.kind,
                version=execution.version,
            )
        holder = execution.ready.worker if execution.ready is not None else None
        return holder if holder in able else able[0]

    async def _put(self, session: str, request: QueryExecution, execution: Execution) -> AnswerQuery | None:
        """The worker's answer; None if it went away."""
        query_id = f"{self._entropy():016x}"
        answer: asyncio.Future[AnswerQuery | None] = asyncio.get_running_loop().create_future()
        self._asked[query_id] = (session, answer)
        work = QueryWork(
            query_id=query_id,
            execution_id=execution.id,
            kind=execution.kind,
            version=execution.version,
            query_name=request.query_name,
            input=NULL if isinstance(request.input, UnsetType) else request.input,
            has_input=not isinstance(request.input, UnsetType),
            as_of=request.as_of,
            last_seq=execution.last_seq,
        )
        try:
            self._desk.deliver([(session, work)])
            return await answer
        finally:
            self._asked.pop(query_id, None)

    def answered(self, request: AnswerQuery) -> None:
        """An answer that nobody waits for any more is dropped."""
        _, answer = self._asked.get(request.query_id, (None, None))
        if answer is not None and not answer.done():
            answer.set_result(request)

    def lost(self, session: str) -> None:
        """The session is over: whoever asked it asks another."""
        for asked, answer in self._asked.values():
            if asked == session and not answer.done():
                answer.set_result(None)

    def stop(self) -> None:
        for _, answer in self._asked.values():
            if not answer.done():
                answer.set_exception(EngineStopped())


def check_as_of(as_of: int | None, execution: Execution) -> None:
    if as_of is not None and not (type(as_of) is int and 1 <= as_of <= execution.last_seq):
        raise InvalidRequest(
            f"as_of must be the number of an event of execution {execution.id}: 1 to {execution.last_seq}, not "
            f"{as_of!r:.50}",
            field="as_of",
            first=1,
            last=execution.last_seq,
        )


def _error_of(failure: Failure, request: QueryExecution, execution: Execution) -> HoldfastError:
    details = {"execution_id": execution.id, "query_name": request.query_name}
    if failure.code in _PLAIN:
        return _PLAIN[failure.code](failure.message, **details)
    cls = QueryNotReadOnly if failure.code == QueryNotReadOnly.code else QueryFailed
    return cls(failure.message, error_type=failure.type, **details)
