"""Settle a promise, or finish a task, from outside: the first settlement wins for ever.

There are several requests to do so. They become one operation with one `SettlePromise`, so that an idempotency key
stands for the settlement, whichever way it was asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import msgspec
from msgspec import Raw

from holdfast.contract.failures import Rejection, failure_of
from holdfast.contract.messages import (
    CompleteNamedPromise,
    CompletePromise,
    RejectPromise,
    ResolvePromise,
    SettledPromise,
)
from holdfast.engine.api import Run, answers
from holdfast.engine.operation import Operation
from holdfast.engine.rules import promises, tasks
from holdfast.engine.rules.starting import open_execution
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import ExecutionClosed, InvalidRequest, PromiseNotFound, StaleAttempt
from holdfast.model.executions import Execution
from holdfast.model.messages import PromiseRow, PromiseState, TokenRow
from holdfast.model.names import check_name
from holdfast.model.tokens import token_hash
from holdfast.model.values import MICRO, NULL, Failure, Settlement
from holdfast.store.protocol import LoadPlan

MOST_RESETS = 1_000
"""How often a promise is looked for in the place of another: a loop, however made, must end."""


class SettlePromise(msgspec.Struct, frozen=True, kw_only=True):
    """Resolve a promise, or reject it if there is a `failure`. Named by `promise_id`, by `workflow_id` and `name`, or
    by `token_hash`; a token may also stand for a task's attempt."""

    org: str
    promise_id: str | None = None
    workflow_id: str | None = None
    name: str | None = None
    token_hash: str | None = None
    value: Raw = NULL
    failure: Failure | None = None
    allow_early: bool = False
    request_id: str | None = None
    ttl_s: float | None = None


class Settle(Operation[SettlePromise, SettledPromise]):
    """`instead` is the promise that has taken the place of the one that was asked for, after a reset: execution id and
    name. Whoever holds an old token or id need not know."""

    __slots__ = ("instead",)
    ANSWER = SettledPromise

    def __init__(self, request: SettlePromise, instead: tuple[str, str] | None = None) -> None:
        super().__init__(request)
        self.instead = instead

    def plan(self, plan: LoadPlan) -> None:
        request = self.request
        if self.instead is not None:
            plan.promises.add(self.instead)
        if request.token_hash is not None:
            plan.want(TokenRow, request.token_hash)
        elif request.promise_id is not None:
            execution_id, _, name = request.promise_id.partition(":")
            plan.promises.add((execution_id, name))
        elif request.workflow_id is not None and request.name is not None:
            plan.workflow_keys.add((request.org, request.workflow_id))
            plan.named_promises.add((request.org, request.workflow_id, request.name))

    def decide(self, ws: Workspace) -> SettledPromise:
        request = self.request
        if request.token_hash is not None:
            token = ws.get(TokenRow, request.token_hash)
            if token is None or token.org != request.org:
                raise PromiseNotFound("no promise or task has this token: check it, it may be cut short")
            if token.task_no is not None:
                return self._finish_task(ws, token)
            execution_id, name, by = token.execution_id, token.promise or "", "token"
        elif request.promise_id is not None:
            execution_id, _, name = request.promise_id.partition(":")
            by = "id"
        else:
            execution_id, name, by = self._named(ws), request.name or "", "name"
        if self.instead is not None:
            execution_id, name = self.instead
        return self._settle(ws, execution_id, name, by)

    def _named(self, ws: Workspace) -> str:
        request = self.request
        workflow_id = request.workflow_id or ""
        execution = open_execution(ws, request.org, workflow_id)
        if execution is not None:
            return execution.id
        return ws.loaded.workflow_keys.get((request.org, workflow_id), workflow_id)

    def _settle(self, ws: Workspace, execution_id: str, name: str, by: str) -> SettledPromise:
        request = self.request
        execution = ws.loaded.executions.get(execution_id)
        promise = ws.loaded.promises.get((execution_id, name))
        if execution is None or execution.org != request.org:
            raise self._unknown(f"{execution_id}:{name}")
        if promise is not None and promises.is_forgotten(ws, promise):
            promise = None
        settlement = Settlement(by=by, idempotency_key=request.request_id)
        settled = promises.Settled(
            PromiseState.RESOLVED if request.failure is None else PromiseState.REJECTED,
            value=request.value,
            failure=request.failure,
            by=settlement,
        )
        if promise is None:
            return self._answer(self._settle_early(ws, execution, name, settled), first=True)
        return self._answer(promise, first=promises.settle(ws, execution, promise, settled))

    def _settle_early(self, ws: Workspace, execution: Execution, name: str, settled: promises.Settled) -> PromiseRow:
        if not self.request.allow_early:
            raise self._unknown(f"{execution.id}:{name}")
        if not execution.is_open:
            raise ExecutionClosed(
                f"execution {execution.id} is closed ({execution.status}) and has never had a promise {name!r}",
                execution_id=execution.id,
                status=execution.status.value,
            )
        ttl_s = ws.config.request_ttl_s if self.request.ttl_s is None else self.request.ttl_s
        return promises.settle_early(ws, execution, name, settled=settled, expires_at=ws.now + int(ttl_s * MICRO))

    def _unknown(self, promise_id: str) -> PromiseNotFound:
        return PromiseNotFound(
            f"no promise {promise_id!r} in org {self.request.org!r}: its workflow has not made it (yet); with "
            "allow_early it can be settled in advance",
            promise_id=promise_id,
        )

    def _answer(self, promise: PromiseRow, *, first: bool) -> SettledPromise:
        return SettledPromise(
            promise_id=promise.id,
            state=promise.state,
            already_resolved=not first,
            value=promise.value,
            failure=promise.failure,
        )

    def _finish_task(self, ws: Workspace, token: TokenRow) -> SettledPromise:
        """By the same path as a worker's report: only the attempt that the token was given to counts."""
        request = self.request
        assert token.task_no is not None, "a token of a task"
        execution = ws.loaded.executions[token.execution_id]
        task = ws.loaded.tasks.get((token.execution_id, token.task_no))
        if task is None or task.attempt != token.attempt or not task.deferred or not execution.is_open:
            raise StaleAttempt(
                f"attempt {token.attempt} of task {token.task_no} of execution {token.execution_id} is over; its "
                "completion was not recorded",
                execution_id=token.execution_id,
                task_no=token.task_no,
                attempt=token.attempt,
            )
        if request.failure is None:
            tasks.complete(ws, execution, task, request.value)
        else:
            tasks.reject_attempt(ws, execution, task, request.failure)
        return SettledPromise(
            promise_id=f"{token.execution_id}:task:{token.task_no}",
            state=PromiseState.RESOLVED if request.failure is None else PromiseState.REJECTED,
            already_resolved=False,
            value=request.value,
            failure=request.failure,
        )

    def subject(self, answer: SettledPromise) -> tuple[str | None, str | None]:
        return None, answer.promise_id


class Promises:
    """Settles promises. One whose execution was reset is settled where that continues."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @answers(ResolvePromise)
    def resolve(self, request: ResolvePromise, using: Any = None) -> Awaitable[SettledPromise]:
        return self._settle(_by_id(request, value=request.value), using)

    @answers(RejectPromise)
    def reject(self, request: RejectPromise, using: Any = None) -> Awaitable[SettledPromise]:
        return self._settle(_by_id(request, failure=failure_of(request.error)), using)

    @answers(CompletePromise)
    def complete(self, request: CompletePromise, using: Any = None) -> Awaitable[SettledPromise]:
        if (request.token is None) == (request.token_hash is None):
            raise InvalidRequest("give the token", field="token")
        hashed = request.token_hash if request.token is None else token_hash(request.token)
        settlement = SettlePromise(
            org=request.org,
            token_hash=hashed,
            value=request.value,
            failure=_failure(request.value, request.error),
            request_id=request.request_id,
            ttl_s=request.ttl_s,
        )
        return self._settle(settlement, using)

    @answers(CompleteNamedPromise)
    def complete_named(self, request: CompleteNamedPromise, using: Any = None) -> Awaitable[SettledPromise]:
        settlement = SettlePromise(
            org=request.org,
            workflow_id=request.workflow_id,
            name=request.name,
            value=request.value,
            failure=_failure(request.value, request.error),
            allow_early=request.allow_early,
            request_id=request.request_id,
            ttl_s=request.ttl_s,
        )
        return self._settle(settlement, using)

    def _settle(self, settlement: SettlePromise, using: Any) -> Awaitable[SettledPromise]:
        return self._settled(settlement, using, self._run(Settle(settlement), using))

    async def _settled(
        self, settlement: SettlePromise, using: Any, answer: Awaitable[SettledPromise]
    ) -> SettledPromise:
        for _ in range(MOST_RESETS):
            try:
                return await answer
            except ExecutionClosed as refusal:
                successor, name = refusal.details.get("successor"), refusal.details.get("promise")
                if successor is None or name is None:
                    raise
                answer = self._run(Settle(settlement, (successor, name)), using)
        return await answer


def _by_id(request: ResolvePromise | RejectPromise, **settled: Any) -> SettlePromise:
    execution_id, _, name = request.promise_id.partition(":")
    if not execution_id or not name:
        raise InvalidRequest(
            f"a promise id is an execution id, a colon and a name, not {request.promise_id!r:.100}", field="promise_id"
        )
    check_name(execution_id, "promise_id")
    check_name(name, "promise_id")
    return SettlePromise(
        org=request.org,
        promise_id=request.promise_id,
        allow_early=request.allow_early,
        request_id=request.request_id,
        ttl_s=request.ttl_s,
        **settled,
    )


def _failure(value: Raw, error: str | Rejection | None) -> Failure | None:
    if error is None:
        return None
    if bytes(value) != bytes(NULL):
        raise InvalidRequest("a promise is settled with a result or an error, not with both", field="error")
    return failure_of(error)
