"""Reset, fork and retry: the history is read before the transaction, because it can be long, and again if it has
changed meanwhile in a way that matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from holdfast.contract.executions import ForkExecution, ResetExecution, RetryExecution, StartAnswer
from holdfast.engine.api import answers
from holdfast.engine.executions.fork import Fork
from holdfast.engine.executions.rebuild import Rebuild
from holdfast.engine.executions.reset import Reset
from holdfast.engine.executions.retry import Retry
from holdfast.engine.past import ChoosePoint, Past, read_past
from holdfast.engine.rules.rebuilding import check_point, retry_point
from holdfast.engine.unit_of_work import OperationQueue
from holdfast.errors import Unavailable
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Execution
from holdfast.model.tokens import execution_key, promise_token, token_hash
from holdfast.store.protocol import Store


class Rebuilds:
    """`secret` gives what the tokens of promises are made from."""

    def __init__(self, store: Store, queue: OperationQueue, secret: Callable[[], bytes]) -> None:
        self._store = store
        self._queue = queue
        self._secret = secret

    @answers(ResetExecution)
    async def reset(self, request: ResetExecution) -> StartAnswer:
        return await self._rebuild(Reset, request, _at(request.to_event, "to_event"))

    @answers(ForkExecution)
    async def fork(self, request: ForkExecution) -> StartAnswer:
        return await self._rebuild(Fork, request, _at(request.at_event, "at_event"))

    @answers(RetryExecution)
    async def retry(self, request: RetryExecution) -> StartAnswer:
        return await self._rebuild(Retry, request, retry_point)

    async def _rebuild(
        self,
        operation: Callable[[Any, Past, Callable[[str, str], str]], Rebuild[Any]],
        request: ResetExecution | ForkExecution | RetryExecution,
        choose: ChoosePoint,
    ) -> StartAnswer:
        while True:
            past = await read_past(self._store, request.org, request.workflow_execution_id, choose)
            try:
                return await self._queue.submit(operation(request, past, partial(self._token_hash, request.org)))
            except Unavailable as refusal:
                # Something came between reading and deciding: a child's end, a verdict on an update. There is one of
                # each, so this comes to an end.
                if "outdated" not in refusal.details:
                    raise

    def _token_hash(self, org: str, execution_id: str, name: str) -> str:
        key = execution_key(self._secret(), org, execution_id)
        return token_hash(promise_token(key, org, execution_id, name))


def _at(seq: int, field: str) -> ChoosePoint:
    def chosen(history: Sequence[HistoryEvent], _: Execution) -> int:
        check_point(history, seq, field)
        return seq

    return chosen
