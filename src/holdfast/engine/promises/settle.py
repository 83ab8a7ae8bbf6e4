"""Settle a promise, or finish a task, from outside: the first settlement wins for ever."""

from __future__ import annotations

from holdfast.contract.messages import SettleAnswer, SettlePromise
from holdfast.engine.operation import Operation
from holdfast.engine.rules import promises, tasks
from holdfast.engine.rules.starts import open_execution
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import ExecutionClosed, InvalidRequest, PromiseNotFound, StaleAttempt
from holdfast.model.executions import Execution
from holdfast.model.messages import PromiseRow, PromiseState, TokenRow
from holdfast.model.validation import check_name
from holdfast.model.values import MICRO, Settlement
from holdfast.store.protocol import LoadPlan


def check_target(request: SettlePromise) -> None:
    """Refuse a request that does not name its promise in exactly one way."""
    ways = [request.token_hash, request.promise_id, request.name]
    if sum(way is not None for way in ways) != 1 or (request.name is None) != (request.workflow_id is None):
        raise InvalidRequest(
            "name a promise by its id, by workflow id and name, or by a token: exactly one of them", field="promise_id"
        )
    if request.promise_id is not None:
        execution_id, _, name = request.promise_id.partition(":")
        if not execution_id or not name:
            raise InvalidRequest(
                f"a promise id is an execution id, a colon and a name, not {request.promise_id!r:.100}",
                field="promise_id",
            )
        check_name(execution_id, "promise_id")
        check_name(name, "promise_id")
    if request.workflow_id is not None and request.name is not None:
        check_name(request.workflow_id, "workflow_id")
        check_name(request.name, "name")


class Settle(Operation[SettlePromise, SettleAnswer]):
    """`instead` is the promise that has taken the place of the one that was asked for, after a reset: execution id and
    name. Whoever holds an old token or id need not know."""

    __slots__ = ("instead",)
    ANSWER = SettleAnswer

    def __init__(self, request: SettlePromise, instead: tuple[str, str] | None = None) -> None:
        super().__init__(request)
        self.instead = instead

    def plan(self, plan: LoadPlan) -> None:
        request = self.request
        if self.instead is not None:
            plan.promises.add(self.instead)
        if request.token_hash is not None:
            plan.tokens.add(request.token_hash)
        elif request.promise_id is not None:
            execution_id, _, name = request.promise_id.partition(":")
            plan.promises.add((execution_id, name))
        elif request.workflow_id is not None and request.name is not None:
            plan.workflow_keys.add((request.org, request.workflow_id))
            plan.named_promises.add((request.org, request.workflow_id, request.name))

    def decide(self, uow: UnitOfWork) -> SettleAnswer:
        request = self.request
        if request.token_hash is not None:
            token = uow.loaded.tokens.get(request.token_hash)
            if token is None or token.org != request.org:
                raise PromiseNotFound("no promise or task has this token: check it, it may be cut short")
            if token.task_no is not None:
                return self._finish_task(uow, token)
            execution_id, name, by = token.execution_id, token.promise or "", "token"
        elif request.promise_id is not None:
            execution_id, _, name = request.promise_id.partition(":")
            by = "id"
        else:
            execution_id, name, by = self._named(uow), request.name or "", "name"
        if self.instead is not None:
            execution_id, name = self.instead
        return self._settle(uow, execution_id, name, by)

    def _named(self, uow: UnitOfWork) -> str:
        request = self.request
        workflow_id = request.workflow_id or ""
        execution = open_execution(uow, request.org, workflow_id)
        if execution is not None:
            return execution.id
        return uow.loaded.workflow_keys.get((request.org, workflow_id), workflow_id)

    def _settle(self, uow: UnitOfWork, execution_id: str, name: str, by: str) -> SettleAnswer:
        request = self.request
        execution = uow.loaded.executions.get(execution_id)
        promise = uow.loaded.promises.get((execution_id, name))
        if execution is None or execution.org != request.org:
            raise self._unknown(f"{execution_id}:{name}")
        if promise is not None and promises.is_forgotten(uow, promise):
            promise = None
        settlement = Settlement(by=by, idempotency_key=request.request_id)
        settled = promises.Settled(
            PromiseState.RESOLVED if request.failure is None else PromiseState.REJECTED,
            value=request.value,
            failure=request.failure,
            by=settlement,
        )
        if promise is None:
            return self._answer(self._settle_early(uow, execution, name, settled), first=True)
        return self._answer(promise, first=promises.settle(uow, execution, promise, settled))

    def _settle_early(self, uow: UnitOfWork, execution: Execution, name: str, settled: promises.Settled) -> PromiseRow:
        if not self.request.allow_early:
            raise self._unknown(f"{execution.id}:{name}")
        if not execution.is_open:
            raise ExecutionClosed(
                f"execution {execution.id} is closed ({execution.status}) and has never had a promise {name!r}",
                execution_id=execution.id,
                status=execution.status.value,
            )
        ttl_s = uow.config.request_ttl_s if self.request.ttl_s is None else self.request.ttl_s
        return promises.settle_early(uow, execution, name, settled=settled, expires_at=uow.now + int(ttl_s * MICRO))

    def _unknown(self, promise_id: str) -> PromiseNotFound:
        return PromiseNotFound(
            f"no promise {promise_id!r} in org {self.request.org!r}: its workflow has not made it (yet); with "
            "allow_early it can be settled in advance",
            promise_id=promise_id,
        )

    def _answer(self, promise: PromiseRow, *, first: bool) -> SettleAnswer:
        return SettleAnswer(
            promise_id=promise.id,
            state=promise.state,
            already_resolved=not first,
            value=promise.value,
            failure=promise.failure,
        )

    def _finish_task(self, uow: UnitOfWork, token: TokenRow) -> SettleAnswer:
        """By the same path as a worker's report: only the attempt that the token was given to counts."""
        request = self.request
        assert token.task_no is not None, "a token of a task"
        execution = uow.loaded.executions[token.execution_id]
        task = uow.loaded.tasks.get((token.execution_id, token.task_no))
        if task is None or task.attempt != token.attempt or not task.deferred or not execution.is_open:
            raise StaleAttempt(
                f"attempt {token.attempt} of task {token.task_no} of execution {token.execution_id} is over; its "
                "completion was not recorded",
                execution_id=token.execution_id,
                task_no=token.task_no,
                attempt=token.attempt,
            )
        if request.failure is None:
            tasks.complete(uow, execution, task, request.value)
        else:
            tasks.reject_attempt(uow, execution, task, request.failure)
        return SettleAnswer(
            promise_id=f"{token.execution_id}:task:{token.task_no}",
            state=PromiseState.RESOLVED if request.failure is None else PromiseState.REJECTED,
            already_resolved=False,
            value=request.value,
            failure=request.failure,
        )

    def subject(self, answer: SettleAnswer) -> tuple[str | None, str | None]:
        return None, answer.promise_id
