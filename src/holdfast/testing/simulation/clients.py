"""Callers: each call goes to some node, under a request id, and is repeated there or elsewhere until its fate is known.

A caller hears nothing when its node dies or stands still, or when the answer is lost on its way; it gives up waiting
after a while and asks again, with the same request id. Some ask once more long after they were answered, as a queue
does that delivers a request twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from holdfast.contract import executions as ex
from holdfast.contract import messages as ms
from holdfast.contract.calls import GetUpdate, RequestUpdate, UpdateOutcome, UpdateStatus
from holdfast.contract.execution_reads import FindWorkflow, GetWorkflow, ListExecutions
from holdfast.contract.failures import Rejection
from holdfast.contract.fields import FOREVER
from holdfast.contract.history import GetHistory
from holdfast.engine.facade import LocalEngine
from holdfast.engine.rules.rebuilding import points
from holdfast.errors import ExecutionClosed, ExecutionNotFound, HoldfastError, OutcomeUnknown, Unavailable
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Execution
from holdfast.model.values import NULL, Wait
from holdfast.testing.simulation.ledger import Call, Ledger
from holdfast.testing.simulation.node import ORG, Node
from holdfast.testing.simulation.programs import BROKEN, REFUSED, UPDATE

T = TypeVar("T")
PATIENCE_S = 1.0
PAUSE_S = 0.2
UPDATE_TRIES = 20
END_TRIES = 6
ANY = 0.3
"""How often somebody does an execution again without regard to whose it is."""
UNKNOWN = (TimeoutError, Unavailable, OutcomeUnknown)


def payload(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


class Clients:
    """All callers of a scenario. `deaf`: how often an answer is lost on its way; `echo`: how often a call that was
    answered comes once more, much later. `clock` is the true time."""

    def __init__(
        self,
        rng: Random,
        nodes: Callable[[], list[Node]],
        ledger: Ledger,
        clock: Callable[[], int],
        *,
        deaf: float,
        echo: float,
    ) -> None:
        self._rng = rng
        self._nodes = nodes
        self._ledger = ledger
        self._clock = clock
        self._numbers = 0
        self.deaf = deaf
        self.echo = echo
        self.echoes: list[asyncio.Task[None]] = []

    def calm(self) -> None:
        self.deaf = self.echo = 0.0

    def _call(self, what: str, workflow_id: str, name: str = "") -> Call:
        self._numbers += 1
        call = Call(what, f"r{self._numbers}", workflow_id, name, self._clock())
        self._ledger.calls.append(call)
        return call

    async def _node(self) -> Node:
        while not (nodes := self._nodes()):  # noqa: ASYNC110 - time is virtual
            await asyncio.sleep(PAUSE_S)
        return self._rng.choice(nodes)

    async def _ask(self, call: Call, ask: Callable[[LocalEngine], Awaitable[T]]) -> T | None:
        """Until it is known what came of it. None if it was refused."""
        repeats = 0
        while True:
            node = await self._node()
            self._ledger.note(f"{call.request_id}: {call.what} {call.workflow_id} {call.name} at {node.name}")
            try:
                async with asyncio.timeout(PATIENCE_S):
                    answer = await ask(node.engine)
            except UNKNOWN as error:
                call.unheard += 1
                self._ledger.note(f"{call.request_id}: {type(error).__name__}")
                await asyncio.sleep(PAUSE_S)
                continue
            except HoldfastError as error:
                if call.answers:
                    call.refused_again = error.code
                call.refused = error.code
                call.returned_at = self._clock()
                self._ledger.note(f"{call.request_id}: {error.code}")
                return None
            except Exception as error:  # noqa: BLE001 - a caller must never see one
                self._ledger.errors.append(f"{call.what} {call.request_id}: {error!r}")
                call.refused = "error"
                call.returned_at = self._clock()
                return None
            call.answers.append(answer)
            if repeats < 2 and self.deaf and self._rng.random() < self.deaf:
                repeats += 1
                self._ledger.note(f"{call.request_id}: the answer is lost")
                continue
            call.returned_at = self._clock()
            self._ledger.note(f"{call.request_id}: ok")
            if self.echo and self._rng.random() < self.echo:
                self.echoes.append(asyncio.ensure_future(self._once_more(call, ask)))
            return answer

    async def _once_more(self, call: Call, ask: Callable[[LocalEngine], Awaitable[T]]) -> None:
        await asyncio.sleep(self._rng.choice((0.05, 0.5, 2.0)))
        node = await self._node()
        self._ledger.note(f"{call.request_id}: once more at {node.name}")
        try:
            async with asyncio.timeout(PATIENCE_S):
                call.answers.append(await ask(node.engine))
        except UNKNOWN:
            pass
        except HoldfastError as error:
            call.refused_again = error.code

    # --- calls ---

    async def start(self, kind: str, workflow_id: str, spec: dict[str, Any], limit_s: float | None) -> None:
        call = self._call("start", workflow_id)
        request = ex.StartWorkflow(
            org=ORG,
            kind=kind,
            workflow_id=workflow_id,
            input=payload(spec),
            execution_timeout_s=limit_s,
            request_id=call.request_id,
        )
        answer = await self._ask(call, lambda engine: engine.api.call(request))
        if answer is not None:
            call.execution_id = answer.workflow_execution_id

    async def signal_with_start(
        self, kind: str, workflow_id: str, spec: dict[str, Any], limit_s: float | None, name: str
    ) -> None:
        call = self._call("signal", workflow_id, name)
        request = ex.SignalWithStart(
            org=ORG,
            kind=kind,
            workflow_id=workflow_id,
            input=payload(spec),
            execution_timeout_s=limit_s,
            signal_name=name,
            signal_value=payload(call.request_id),
            request_id=call.request_id,
        )
        answer = await self._ask(call, lambda engine: engine.api.call(request))
        if answer is not None:
            call.execution_id = answer.workflow_execution_id

    async def signal(self, workflow_id: str, name: str) -> None:
        """To whatever run is open; one that goes on as another is followed, as a real client does."""
        found = await self._find(workflow_id)
        if found is not None:
            await self._signal(found, workflow_id, name)

    async def _signal(self, found: str, workflow_id: str, name: str) -> None:
        call = self._call("signal", workflow_id, name)

        async def ask(engine: LocalEngine) -> ex.SignalResponse:
            target = found
            while True:
                request = ex.SignalWorkflow(
                    org=ORG,
                    workflow_execution_id=target,
                    signal_name=name,
                    signal_value=payload(call.request_id),
                    addressed_to=None if target == found else found,
                    request_id=call.request_id,
                )
                try:
                    return await engine.api.call(request)
                except ExecutionClosed as closed:
                    successor = closed.details.get("successor")
                    if successor is None:
                        raise
                    target = successor

        await self._ask(call, ask)

    async def _find(self, workflow_id: str) -> str | None:
        found = await self._read(lambda engine: engine.api.call(FindWorkflow(org=ORG, workflow_id=workflow_id)))
        return found.id if found is not None else None

    async def _read(self, ask: Callable[[LocalEngine], Awaitable[T]]) -> T | None:
        """From whatever node answers. None if it is not there."""
        while True:
            node = await self._node()
            try:
                async with asyncio.timeout(PATIENCE_S):
                    return await ask(node.engine)
            except ExecutionNotFound:
                return None
            except UNKNOWN:
                await asyncio.sleep(PAUSE_S)

    async def update(self, workflow_id: str) -> None:
        """Ask for it, and wait for what comes of it, wherever its execution goes on."""
        found = await self._find(workflow_id)
        if found is None:
            return
        call = self._call("update", workflow_id, UPDATE)
        call.execution_id = found
        label = self._rng.choice(("u", "u", REFUSED, BROKEN)) + call.request_id
        request = RequestUpdate(
            org=ORG,
            workflow_execution_id=found,
            update_name=UPDATE,
            input=payload(label),
            update_id=call.request_id,
            wait_for=UpdateStatus.REQUESTED,
        )
        requested = await self._ask(call, lambda engine: engine.api.call(request))
        if requested is not None:
            await self._outcome(call, requested)

    async def _outcome(self, call: Call, requested: UpdateOutcome) -> None:
        request = GetUpdate(
            org=ORG,
            workflow_execution_id=requested.workflow_execution_id,
            update_id=requested.update_id,
            wait=FOREVER,
            sequence=requested.update_event_sequence or 0,
        )
        for _ in range(UPDATE_TRIES):
            node = await self._node()
            try:
                async with asyncio.timeout(PATIENCE_S):
                    call.outcome = await node.engine.api.call(request)
                    self._ledger.note(f"{call.request_id}: {call.outcome.status}")
                    return
            except UNKNOWN:
                await asyncio.sleep(PAUSE_S)
            except HoldfastError as error:
                call.refused_again = error.code
                return

    async def end(self, what: str, workflow_id: str) -> None:
        """Cancel or terminate the newest run."""
        found = await self._find(workflow_id)
        if found is None:
            return
        call = self._call(what, workflow_id)
        call.execution_id = found
        if what == "cancel":
            cancel = ex.CancelExecution(org=ORG, workflow_execution_id=found, reason=call.request_id)
            await self._ask(call, lambda engine: engine.api.call(cancel))
        else:
            terminate = ex.TerminateExecution(org=ORG, workflow_execution_id=found, reason=call.request_id)
            await self._ask(call, lambda engine: engine.api.call(terminate))

    async def redo(self, what: str, workflow_id: str) -> None:
        """Reset, fork or retry the newest run of a workflow id, or whatever execution there is."""
        rng = self._rng
        found = await self._find(workflow_id)
        if rng.random() < ANY:
            page = await self._read(lambda engine: engine.api.call(ListExecutions(org=ORG)))
            found = rng.choice(page.items).id if page is not None and page.items else found
        if found is None:
            return
        if what == "retry":
            await self._end_of(found)
        history = await self._read(lambda engine: _history(engine, found)) or []
        call = self._call(what, workflow_id)
        call.execution_id, call.known = found, len(history)
        call.reapply = what == "retry" or rng.random() < 0.7
        allowed = points(history)
        request = self._request(call, rng.choice((rng.choice(allowed), allowed[-1])))
        await self._ask(call, lambda engine: engine.api.call(request))

    def _request(self, call: Call, seq: int) -> ex.ResetExecution | ex.ForkExecution | ex.RetryExecution:
        """Under a name by which the execution that comes of it is known."""
        found, name = call.execution_id, call.request_id
        match call.what:
            case "reset":
                return ex.ResetExecution(
                    org=ORG,
                    workflow_execution_id=found,
                    to_event=seq,
                    reason=name,
                    reapply_signals=call.reapply,
                    request_id=name,
                )
            case "fork":
                return ex.ForkExecution(
                    org=ORG,
                    workflow_execution_id=found,
                    at_event=seq,
                    workflow_id=name,
                    reapply_signals=call.reapply,
                    request_id=name,
                )
        return ex.RetryExecution(org=ORG, workflow_execution_id=found, reason=name, request_id=name)

    async def _end_of(self, execution_id: str) -> None:
        """Wait for it, but not for ever: it may be waiting for somebody itself."""
        request = GetWorkflow(org=ORG, workflow_execution_id=execution_id)
        for _ in range(END_TRIES):
            head = await self._read(lambda engine: engine.api.call(request))
            if head is None or not head.is_open:
                return
            await asyncio.sleep(2 * PAUSE_S)

    async def settle(self, workflow_id: str, name: str, *, reject: bool = False, early: bool = False) -> None:
        call = self._call("settle", workflow_id, name)
        request = ms.CompleteNamedPromise(
            org=ORG,
            workflow_id=workflow_id,
            name=name,
            value=NULL if reject else payload(call.request_id),
            error=Rejection(type="No", message=call.request_id) if reject else None,
            allow_early=early,
            request_id=call.request_id,
        )
        await self._ask(call, lambda engine: engine.api.call(request))

    async def publish(self, key: str, correlation: str | None = None) -> None:
        call = self._call("publish", "", key)
        event = ms.PublishEvent(org=ORG, key=key, data=payload(call.request_id), request_id=call.request_id)
        if correlation is None:
            await self._ask(call, lambda engine: engine.api.call(event))
            return
        message = ms.SendMessage(org=ORG, key=key, data=event.data, correlation=correlation, request_id=call.request_id)
        await self._ask(call, lambda engine: engine.api.call(message))

    async def broadcast(self, name: str) -> None:
        call = self._call("broadcast", "", name)
        request = ms.ThrowBroadcast(org=ORG, name=name, request_id=call.request_id)
        await self._ask(call, lambda engine: engine.api.call(request))

    async def give(self, execution: Execution, wait: Wait) -> None:
        """What an execution at rest waits for."""
        match wait.kind:
            case "signal":
                await self._signal(execution.id, execution.workflow_id, wait.name)
            case "promise":
                # Two at a time, now and then: the first counts.
                await asyncio.gather(*(self._settle_one(execution, wait) for _ in range(self._rng.choice((1, 2)))))
            case "event":
                await self.publish(wait.name)
            case "message":
                for correlation in ("k", "l"):
                    await self.publish(wait.name, correlation)
            case "broadcast":
                await self.broadcast(wait.name)

    async def _settle_one(self, execution: Execution, wait: Wait) -> None:
        call = self._call("settle", execution.workflow_id, wait.name)
        request = ms.ResolvePromise(
            org=ORG,
            promise_id=f"{execution.id}:{wait.name}",
            value=payload(call.request_id),
            request_id=call.request_id,
        )
        await self._ask(call, lambda engine: engine.api.call(request))


async def _history(engine: LocalEngine, execution_id: str) -> list[HistoryEvent]:
    events: list[HistoryEvent] = []
    while True:
        request = GetHistory(org=ORG, workflow_execution_id=execution_id, after=len(events))
        page = await engine.api.call(request)
        events += [entry.event for entry in page.events]
        if not page.more:
            return events
