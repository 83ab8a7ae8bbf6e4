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
from typing import Protocol

from holdfast.contract.workers import AnswerQuery, LoadedHistory, QueryWork
from holdfast.errors import (
    CallFailed,
    HoldfastError,
    InvalidRequest,
    NotFound,
    ProgramError,
    QueryFailed,
    SnapshotMismatch,
    Unavailable,
)
from holdfast.model.values import Failure, Payload
from holdfast.replay.definition import Definition
from holdfast.replay.machine import Machine
from holdfast.replay.views import as_of, is_closed
from holdfast.worker.host import Host, log
from holdfast.worker.rebuilding import log_mismatch, read_past, recreate

KEPT = 16
KEPT_EVENTS = 100_000
"""Programs built for queries that are kept, and how many events their histories may have in all."""

LOOK_ROUNDS = 3

Key = tuple[str, int, bool]
"""Execution, event, and whether the program is as it was at that event or has seen everything up to it."""
Look = Callable[[Machine | None], bool]
"""Gets a settled program, or None if there is none; answers whether it may live on."""


class Looker:
    """Somebody who wants to look at a live program when it has seen event `last_seq`; how many commits he waits for."""

    __slots__ = ("last_seq", "look", "rounds")

    def __init__(self, last_seq: int, look: Look) -> None:
        self.last_seq = last_seq
        self.look = look
        self.rounds = LOOK_ROUNDS


class LiveProgram(Protocol):
    """The runner of an execution."""

    def show(self, last_seq: int, look: Look) -> None: ...


class Watchdog(Protocol):
    """Who notices that a program blocks the worker."""

    def turn_begins(self, work: QueryWork) -> None: ...

    def turn_ends(self) -> None: ...


class QueryRunner:
    """The questions of one worker. `live` finds the runner of an execution."""

    def __init__(self, host: Host, live: Callable[[str], LiveProgram | None], watchdog: Watchdog) -> None:
        self._host = host
        self._live = live
        self._watchdog = watchdog
        self._kept: OrderedDict[Key, tuple[Machine, int]] = OrderedDict()
        self._building: dict[Key, asyncio.Task[Machine]] = {}
        self._answering: set[asyncio.Task[None]] = set()

    def start(self, work: QueryWork) -> None:
        task = self._host.loop.create_task(self._answer(work), name="holdfast-query")
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
            await self._host.workers.answer_query(answer)
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
            return machine.program.query(work.query_name, work.input, work.has_input)

    @contextmanager
    def _watched(self, work: QueryWork) -> Iterator[None]:
        """A handler that never ends must not keep the worker's leases alive."""
        self._watchdog.turn_begins(work)
        try:
            yield
        finally:
            self._watchdog.turn_ends()

    async def _ask_live(self, runner: LiveProgram, work: QueryWork) -> Payload | None:
        done: asyncio.Future[Payload | None] = self._host.loop.create_future()

        def look(machine: Machine | None) -> bool:
            if machine is None or done.done():
                if not done.done():
                    done.set_result(None)
                return True
            try:
                done.set_result(self._query(machine, work))
            except Exception as error:  # noqa: BLE001 - belongs to whoever asked
                done.set_exception(error)
            return not _spoiled(machine)

        runner.show(work.last_seq, look)
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
                building = self._building[key] = self._host.loop.create_task(self._build(key, work))
                building.add_done_callback(lambda _: self._building.pop(key, None))
            machine = await asyncio.shield(building)
            # Another question may have spoiled it, or pushed it out, since it was built.
            if not machine.dead:
                return machine

    async def _build(self, key: Key, work: QueryWork) -> Machine:
        definition = self._host.registry.workflow(work.kind, work.version)
        assert definition is not None, "the engine asks workers that know the kind"
        past = await self._past(definition, work, from_start=work.as_of is not None)
        try:
            machine = self._recreated(definition, past, work)
        except SnapshotMismatch as mismatch:
            log_mismatch(work.execution_id, past.snapshot, mismatch)
            past = await self._past(definition, work, from_start=True)
            machine = self._recreated(definition, past, work)
        if work.as_of is None:
            key = (key[0], past.events[-1].seq, False)
        self._keep(key, machine, len(past.events))
        return machine

    async def _past(self, definition: Definition, work: QueryWork, *, from_start: bool) -> LoadedHistory:
        past = await read_past(self._host, definition, work.execution_id, from_start=from_start)
        if not past.events:
            raise QueryFailed(f"execution {work.execution_id} has no history any more")
        return past

    def _recreated(self, definition: Definition, past: LoadedHistory, work: QueryWork) -> Machine:
        machine = Machine(definition.program_maker(self._host.environment(work.execution_id)))
        try:
            with self._watched(work):
                _recreate(machine, definition, past, work.as_of)
        except BaseException:
            machine.close()
            raise
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


def _recreate(machine: Machine, definition: Definition, past: LoadedHistory, seq: int | None) -> None:
    """Run the recorded turns; then, unless an earlier moment is asked for, one more on what no turn has seen. What it
    asks for is thrown away."""
    try:
        if seq is None:
            recreate(machine, definition, past)
        else:
            # What was then is not to be found in a snapshot of what came later.
            machine.replay(as_of(past.events, seq))
    except ProgramError as error:
        raise QueryFailed(f"the program can't be recreated: {error}", error_type=type(error).__name__) from error
    if seq is not None or is_closed(past.events) or not machine.has_news:
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
    return not machine.dead and machine.program.spoiled


def _failure_of(error: Exception) -> Failure:
    """The error in its durable form; its code tells the engine which one to raise."""
    if isinstance(error, CallFailed):
        return Failure(type=error.error_type, message=str(error), code=error.code)
    if isinstance(error, HoldfastError):
        code = error.code if isinstance(error, (NotFound, InvalidRequest)) else QueryFailed.code
        return Failure(type=type(error).__name__, message=str(error), code=code)
    log.error("a query broke the worker's own code", exc_info=error)
    return Failure(type=type(error).__name__, message=f"{type(error).__name__}: {error}", code=QueryFailed.code)
