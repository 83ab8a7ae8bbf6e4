"""Answering questions to programs. Nothing is leased, nothing recorded, no step started.

    question ─► live program, seen everything, recorded ─► ask it
             ─► else: a program built from the history for this, kept for the next question ─► ask it

A program that a query has changed is thrown away; the history gives another.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, cast

from holdfast.contract.workers import AnswerQuery, QueryWork
from holdfast.errors import CallFailed, HoldfastError, InvalidRequest, NotFound, ProgramError, QueryFailed, Unavailable
from holdfast.frontends.python.program import program_maker
from holdfast.model.events import HistoryEvent
from holdfast.model.values import Failure, Payload
from holdfast.replay.machine import Machine
from holdfast.replay.views import as_of, is_closed
from holdfast.worker.runtime import WorkerRuntime, log

KEPT = 16
KEPT_EVENTS = 100_000
"""Programs built for queries that are kept, and how many events their histories may have in all."""

Key = tuple[str, int, bool]
"""Execution, event, and whether the program is as it was at that event or has seen everything up to it."""
QueryCallback = Callable[[Machine | None], bool]
"""Gets a settled program, or None if there is none; answers whether it may live on."""


class QueryableProgram(Protocol):
    """What a program has to offer to be asked."""

    spoiled: bool

    def query(self, name: str, input: Payload, has_input: bool) -> Payload: ...


class LiveProgram(Protocol):
    """The runner of an execution."""

    def show(self, last_seq: int, callback: QueryCallback) -> None: ...


class Watchdog(Protocol):
    """Who notices that a program blocks the worker."""

    def turn_started(self, work: QueryWork) -> None: ...

    def turn_ended(self) -> None: ...


class QueryRunner:
    """The questions of one worker. `live` finds the runner of an execution."""

    def __init__(self, runtime: WorkerRuntime, live: Callable[[str], LiveProgram | None], watchdog: Watchdog) -> None:
        self._runtime = runtime
        self._live = live
        self._watchdog = watchdog
        self._kept: OrderedDict[Key, tuple[Machine, int]] = OrderedDict()
        self._building: dict[Key, asyncio.Task[Machine]] = {}
        self._answering: set[asyncio.Task[None]] = set()

    def start(self, work: QueryWork) -> None:
        task = self._runtime.loop.create_task(self._answer(work), name="holdfast-query")
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def stop(self) -> None:
        """Whoever still waits is told by the end of the session."""
        tasks = [*self._answering, *self._building.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._kept:
            self._drop_oldest()

    async def _answer(self, work: QueryWork) -> None:
        try:
            answer = AnswerQuery(query_id=work.query_id, result=await self._ask(work))
        except Exception as error:  # noqa: BLE001 - whatever it was, the caller has to know
            answer = AnswerQuery(query_id=work.query_id, failure=_failure_of(error))
        try:
            await self._runtime.workers.answer_query(answer)
        except Unavailable as error:
            log.info("the answer to query %s was not delivered: %s", work.query_id, error)

    async def _ask(self, work: QueryWork) -> Payload:
        if work.as_of is None and (runner := self._live(work.execution_id)) is not None:
            answer = await self._ask_live(runner, work)
            if answer is not None:
                return answer
        key = (work.execution_id, work.last_seq if work.as_of is None else work.as_of, work.as_of is not None)
        machine = await self._machine(key, work)
        try:
            return self._query(machine, work)
        finally:
            if _spoiled(machine):
                self._drop(machine)

    def _query(self, machine: Machine, work: QueryWork) -> Payload:
        with self._watched(work):
            return cast(QueryableProgram, machine.program).query(work.query_name, work.input, work.has_input)

    @contextmanager
    def _watched(self, work: QueryWork) -> Iterator[None]:
        """A handler that never ends must not keep the worker's leases alive."""
        self._watchdog.turn_started(work)
        try:
            yield
        finally:
            self._watchdog.turn_ended()

    async def _ask_live(self, runner: LiveProgram, work: QueryWork) -> Payload | None:
        done: asyncio.Future[Payload | None] = self._runtime.loop.create_future()

        def callback(machine: Machine | None) -> bool:
            if machine is None or done.done():
                if not done.done():
                    done.set_result(None)
                return True
            try:
                done.set_result(self._query(machine, work))
            except Exception as error:  # noqa: BLE001 - belongs to whoever asked
                done.set_exception(error)
            return not _spoiled(machine)

        runner.show(work.last_seq, callback)
        return await done

    # --- programs built for a query ---

    async def _machine(self, key: Key, work: QueryWork) -> Machine:
        while True:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept[0]
            building = self._building.get(key)
            if building is None:
                building = self._building[key] = self._runtime.loop.create_task(self._build(key, work))
                building.add_done_callback(lambda _: self._building.pop(key, None))
            machine = await asyncio.shield(building)
            # Another question may have spoiled it, or pushed it out, since it was built.
            if not machine.dead:
                return machine

    async def _build(self, key: Key, work: QueryWork) -> Machine:
        history = await self._runtime.workers.history(self._runtime.org, work.execution_id)
        if not history:
            raise QueryFailed(f"execution {work.execution_id} has no history any more")
        definition = self._runtime.registry.workflow(work.kind, work.version)
        assert definition is not None, "the engine asks workers that know the kind"
        maker = program_maker(definition, self._runtime.org, work.execution_id, token_key=self._runtime.token_key)
        machine = Machine(maker)
        try:
            with self._watched(work):
                _recreate(machine, history, work.as_of)
        except BaseException:
            machine.close()
            raise
        if work.as_of is None:
            key = (key[0], history[-1].seq, False)
        self._keep(key, machine, len(history))
        return machine

    def _keep(self, key: Key, machine: Machine, events: int) -> None:
        if not key[2]:
            # An open execution has moved on: nobody asks for what it was, except by `as_of`.
            for old in [old for old in self._kept if old[0] == key[0] and not old[2]]:
                self._kept.pop(old)[0].close()
        self._kept[key] = (machine, events)
        # The newest always stays, however long its history: it is about to be asked.
        while len(self._kept) > KEPT or (
            len(self._kept) > 1 and sum(count for _, count in self._kept.values()) > KEPT_EVENTS
        ):
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, (machine, _) = self._kept.popitem(last=False)
        machine.close()

    def _drop(self, machine: Machine) -> None:
        for key, (kept, _) in list(self._kept.items()):
            if kept is machine:
                del self._kept[key]
        machine.close()


def _recreate(machine: Machine, history: list[HistoryEvent], seq: int | None) -> None:
    """Run the recorded turns; then, unless an earlier moment is asked for, one more on what no turn has seen. What it
    asks for is thrown away."""
    try:
        machine.replay(history if seq is None else as_of(history, seq))
    except ProgramError as error:
        raise QueryFailed(f"the program can't be recreated: {error}", error_type=type(error).__name__) from error
    if seq is not None or is_closed(history) or not machine.has_pending_events:
        return
    seen = machine.up_to
    try:
        machine.turn()
    except ProgramError as error:
        advice = f"; as_of={seen} shows it as it was before" if seen else ""
        raise QueryFailed(
            f"the program can't go on after event {seen}: {error}{advice}", error_type=type(error).__name__
        ) from error


def _spoiled(machine: Machine) -> bool:
    return not machine.dead and cast(QueryableProgram, machine.program).spoiled


def _failure_of(error: Exception) -> Failure:
    """The error in its durable form; its code tells the engine which one to raise."""
    if isinstance(error, CallFailed):
        return Failure(type=error.error_type, message=str(error), code=error.code)
    if isinstance(error, HoldfastError):
        code = error.code if isinstance(error, (NotFound, InvalidRequest)) else QueryFailed.code
        return Failure(type=type(error).__name__, message=str(error), code=code)
    log.error("a query broke the worker's own code", exc_info=error)
    return Failure(type=type(error).__name__, message=f"{type(error).__name__}: {error}", code=QueryFailed.code)
