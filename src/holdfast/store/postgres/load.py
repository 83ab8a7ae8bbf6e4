"""Answers a batch's plan inside its transaction.

    orgs and keys locked ─► topics locked ─► what refers to executions is found
    ─► heads locked, in the order of their ids ─► found again
    ─► pages of what nobody holds (claims, due work) ─► the rows of all of them

The head of an execution is the lock of everything that belongs to it, and every statement sees what was committed
before it began: so what is read after the locks is true until the transaction ends. What was found before them, and
looks different now, makes the whole batch begin again (`Raced`). Claims and due work never wait for a lock, and come
last, so that nobody can wait in a circle.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.model.executions import Execution, Ready, TimerRow
from holdfast.store.claim_cursors import ClaimCursors
from holdfast.store.postgres.claims import Claims
from holdfast.store.postgres.keys import load_keys
from holdfast.store.postgres.load_messages import MessageLoad
from holdfast.store.postgres.pauses import load_pauses
from holdfast.store.postgres.statements import Connection, columns, statement
from holdfast.store.protocol import Loaded, LoadPlan, TaskKey, TurnClaim
from holdfast.store.rows import (
    row_to_bare_execution,
    row_to_dead_letter,
    row_to_definition,
    row_to_event,
    row_to_ready,
    row_to_request,
    row_to_task,
    row_to_timer,
    row_to_worker,
)

_LOCK = statement("executions", "lock")
_LOCK_FREE = statement("executions", "lock_free")
_LOCK_WAITING = statement("executions", "lock_waiting")
_EXECUTIONS_THERE = statement("executions", "there")
_CHILDREN = statement("executions", "open_children")
_ORPHANS = statement("executions", "orphans")
_READY = statement("ready", "by_id")
_HELD_TURNS = statement("ready", "held")
_WORKFLOW_KEYS = statement("workflow_keys", "by_key")
_TASKS = statement("tasks", "by_key")
_DUE_TASKS = statement("tasks", "due")
_HELD_TASKS = statement("tasks", "held")
_TIMERS = statement("timers", "by_key")
_DUE_TIMERS = statement("timers", "due")
_ANYTHING_DUE = statement("timers", "anything_due")
_REQUESTS = statement("requests", "by_id")
_EXPIRED_REQUESTS = statement("requests", "expired")
_WORKERS = statement("workers", "by_id")
_EXPIRED_WORKERS = statement("workers", "expired")
_ORPHANED_WORKERS = statement("workers", "orphaned")
_DEFINITIONS = statement("definitions", "by_kind")
_UNREAD = statement("events", "unread")
_GIVEN = statement("events", "given")
_BY_SEQ = statement("events", "by_seq")
_DEAD_LETTERS = statement("dead_letters", "by_key")


class Raced(Exception):
    """Somebody else has changed, in the meantime, what this transaction had found: all of it has to begin again."""


async def load(
    connection: Connection, plan: LoadPlan, now: int, claim_cursors: ClaimCursors | None = None, due_from: int = 0
) -> Loaded:
    """Everything the plan names, and the executions that those rows belong to, locked. `claim_cursors` are what earlier
    claims have learned; nothing is due that lies before `due_from`."""
    return await _Load(connection, plan, now, claim_cursors or ClaimCursors(), due_from).run()


class _Load:
    """One load. `executions` and `tasks` are what is wanted; they grow while rows that refer to some are found."""

    def __init__(
        self, connection: Connection, plan: LoadPlan, now: int, claim_cursors: ClaimCursors, due_from: int
    ) -> None:
        self.connection = connection
        self.due_from = due_from
        self.plan = plan
        self.loaded = Loaded(now=now)
        self.executions = set(plan.executions)
        self.tasks = set(plan.tasks)
        self.timers = set(plan.timers)
        self.execution_rows: dict[str, Any] = {}
        self.messages = MessageLoad(connection, plan, self.loaded)
        self.claims = Claims(connection, self.loaded, self.execution_rows, self._lock_executions, claim_cursors)

    async def run(self) -> Loaded:
        plan = self.plan
        timers, tasks, orphans, deliveries, workers, held = await self._what_is_due()
        if plan.workers or plan.expired_workers or plan.held_by:
            await self._load_workers(expired=workers, held=held)
        if plan.orgs or plan.keys:
            await load_keys(self.connection, plan, self.loaded)
        if plan.pauses:
            await load_pauses(self.connection, plan, self.loaded)
        await self.messages.lock_topics(deliveries=deliveries)
        await self._find()
        await self._lock()
        await self._find_again()
        await self._take_free(timers=timers, tasks=tasks, orphans=orphans)
        await self._load_ready()
        self._settle_pages()
        await self._load_rows()
        return self.loaded

    async def _what_is_due(self) -> tuple[bool, bool, bool, bool, bool, bool]:
        plan = self.plan
        if not (plan.due_timers or plan.due_tasks or plan.orphans or plan.deliveries or plan.expired_workers):
            return False, False, False, False, False, False
        found = await self.connection.fetchrow(_ANYTHING_DUE, self.loaded.now, self.due_from)
        timers, tasks, orphans, deliveries, workers, held = found
        return timers, tasks, orphans, deliveries, workers, held

    # --- before the locks ---

    async def _load_workers(self, *, expired: bool, held: bool) -> None:
        loaded, connection = self.loaded, self.connection
        if self.plan.workers:
            for row in await connection.fetch(_WORKERS, sorted(self.plan.workers)):
                loaded.workers[row[0]] = row_to_worker(row)
        if self.plan.expired_workers:
            for row in await connection.fetch(_EXPIRED_WORKERS, loaded.now) if expired else ():
                loaded.workers.setdefault(row[0], row_to_worker(row))
                loaded.expired_workers.append(row[0])
            orphaned = await connection.fetch(_ORPHANED_WORKERS) if held else ()
            loaded.expired_workers.extend(worker for (worker,) in orphaned)
        holders = sorted(self.plan.held_by.union(loaded.expired_workers))
        if holders:
            loaded.held_turns = [row[0] for row in await connection.fetch(_HELD_TURNS, holders)]
            loaded.held_tasks = [(row[0], row[1]) for row in await connection.fetch(_HELD_TASKS, holders)]
            self.executions.update(loaded.held_turns)
            self.tasks.update(loaded.held_tasks)

    async def _find(self) -> None:
        plan = self.plan
        if plan.requests or plan.expired_requests:
            await self._load_requests()
        if plan.workflow_keys:
            self.loaded.workflow_keys = await self._workflow_keys()
            self.executions.update(self.loaded.workflow_keys.values())
        if plan.children:
            self.loaded.children = await self._children()
            self.executions.update(self.loaded.children.values())
        await self.messages.find()
        self.tasks |= self.messages.tasks
        self.executions |= self.messages.executions
        self.executions.update(execution_id for execution_id, _ in self.tasks)
        self.executions.update(execution_id for execution_id, _ in self.timers)

    async def _load_requests(self) -> None:
        connection, loaded = self.connection, self.loaded
        if self.plan.expired_requests:
            page = await connection.fetch(_EXPIRED_REQUESTS, loaded.now, self.plan.expired_requests)
            loaded.expired_requests = [(row[0], row[1]) for row in page]
        if self.plan.requests:
            for row in await connection.fetch(_REQUESTS, *columns(self.plan.requests, 2)):
                found = loaded.requests[row[0], row[1]] = row_to_request(row)
                if found.execution_id is not None:
                    self.executions.add(found.execution_id)

    async def _workflow_keys(self) -> dict[tuple[str, str], str]:
        found = await self.connection.fetch(_WORKFLOW_KEYS, *columns(self.plan.workflow_keys, 2))
        return {(row[0], row[1]): row[2] for row in found}

    async def _children(self) -> dict[TaskKey, str]:
        found = await self.connection.fetch(_CHILDREN, *columns(self.plan.children, 2))
        return {(row[0], row[1]): row[2] for row in found}

    # --- the locks ---

    async def _lock(self) -> None:
        if self.executions:
            for row in await self.connection.fetch(_LOCK, list(self.executions)):
                self.execution_rows[row[0]] = row

    async def _find_again(self) -> None:
        """A key may have moved on, a child may have gone on as another execution, or have got another parent, while we
        waited for the heads."""
        if self.loaded.workflow_keys and await self._workflow_keys() != self.loaded.workflow_keys:
            raise Raced("a workflow id has moved to another execution")
        if self.plan.children and await self._children() != self.loaded.children:
            raise Raced("a child has ended or gone on")
        if await self.messages.have_waits_ended():
            raise Raced("waits have ended")
        execution_rows = self.execution_rows
        open_ones = (
            execution_rows[key] for key in self.executions if key in execution_rows and execution_rows[key][10] is None
        )
        # Parents are locked with their children; one that retention has removed is not missed.
        missing = {
            execution_row[27] for execution_row in open_ones if execution_row[27] is not None
        } - execution_rows.keys()
        if missing and await self.connection.fetch(_EXECUTIONS_THERE, list(missing)):
            raise Raced("a child has got another parent")

    async def _take_free(self, *, timers: bool, tasks: bool, orphans: bool) -> None:
        """Pages of what nobody holds; what somebody holds is left to him, or for later."""
        plan, loaded, connection = self.plan, self.loaded, self.connection
        free = await self.claims.turns(plan.turn_claims)
        free |= await self.claims.tasks(plan.task_claims)
        free |= plan.idle_executions
        self.tasks.update(key for answer in loaded.task_claims for key in answer)
        due: list[TaskKey] = []
        if plan.due_timers and timers:
            page = await connection.fetch(_DUE_TIMERS, loaded.now, plan.due_timers, self.due_from)
            due = [(row[0], row[1]) for row in page]
            self.timers.update(due)
            free.update(execution_id for execution_id, _ in due)
        if plan.due_tasks and tasks:
            found_tasks = await connection.fetch(_DUE_TASKS, loaded.now, plan.due_tasks, self.due_from)
            loaded.due_tasks = [(row[0], row[1]) for row in found_tasks]
            self.tasks.update(loaded.due_tasks)
            free.update(execution_id for execution_id, _ in loaded.due_tasks)
        if plan.orphans and orphans:
            await self._take_orphans()
        await self._lock_executions(free - self.execution_rows.keys())
        self.due = await self._with_parents(due)

    async def _lock_executions(self, wanted: Iterable[str], *, waiting: bool = False, most: int | None = None) -> int:
        ids = list(wanted)
        if not ids:
            return 0
        found = await self.connection.fetch(_LOCK_WAITING if waiting else _LOCK_FREE, ids, most)
        for row in found:
            self.execution_rows[row[0]] = row
        return len(found)

    async def _take_orphans(self) -> None:
        """Parent and child both, or neither."""
        page = [(row[0], row[1]) for row in await self.connection.fetch(_ORPHANS, self.plan.orphans)]
        wanted = {key for pair in page for key in pair if key is not None}
        await self._lock_executions(wanted - self.execution_rows.keys())
        again = await self.connection.fetch(_ORPHANS, self.plan.orphans)
        self.loaded.orphans = [
            (parent, child)
            for parent, child in again
            if parent in self.execution_rows and (child is None or child in self.execution_rows)
        ]

    async def _with_parents(self, due: list[TaskKey]) -> set[TaskKey]:
        """Due timers without those of children whose parents are not to be had now: they may close their execution, and
        a parent hears of that."""
        execution_rows = self.execution_rows
        parents = {key[0]: execution_rows[key[0]] for key in due if key[0] in execution_rows}
        missing = {
            execution_row[27]
            for execution_row in parents.values()
            if execution_row[27] is not None and execution_row[10] is None
        } - execution_rows.keys()
        await self._lock_executions(missing)
        out_of_reach = missing - execution_rows.keys()
        return {key for key in due if key[0] in execution_rows and execution_rows[key[0]][27] not in out_of_reach}

    # --- after the locks ---

    async def _load_ready(self) -> None:
        if not self.execution_rows:
            return
        executions = self.loaded.executions
        for execution_id, execution_row in self.execution_rows.items():
            executions[execution_id] = row_to_bare_execution(execution_row)
        claimed = self.claims.ready
        others = [execution_id for execution_id in executions if execution_id not in claimed]
        for execution_id, *ready in await self.connection.fetch(_READY, others) if others else ():
            executions[execution_id].ready = row_to_ready(*ready)
        for execution_id, row in claimed.items():
            executions[execution_id].ready = row

    def _settle_pages(self) -> None:
        """What a page was chosen by may have changed before its head was locked."""
        loaded, plan = self.loaded, self.plan
        holders = self.plan.held_by.union(loaded.expired_workers)
        loaded.held_turns = [key for key in loaded.held_turns if _holder(loaded.executions.get(key)) in holders]
        for number, claim in enumerate(plan.turn_claims):
            loaded.turn_claims[number] = [
                key
                for key in loaded.turn_claims[number]
                if _is_claimable(loaded.executions.get(key), claim, loaded.now)
            ]

    async def _load_rows(self) -> None:
        plan, loaded, connection = self.plan, self.loaded, self.connection
        if self.timers:
            for row in await connection.fetch(_TIMERS, *columns(self.timers, 2)):
                loaded.timers[row[0], row[1]] = row_to_timer(row)
            fired = (loaded.timers.get(key) for key in self.due)
            due = [timer for timer in fired if timer is not None and timer.fire_at <= loaded.now]
            loaded.due_timers = sorted(due, key=_by_time)
        await self.messages.load()
        tasks = self.tasks | self.messages.tasks
        if tasks:
            for row in await connection.fetch(_TASKS, *columns(tasks, 2)):
                loaded.tasks[row[0], row[1]] = row_to_task(row)
            self._settle_tasks()
        if plan.unread or plan.calls_after or plan.dead_letters:
            await self._load_unread()
        if plan.definitions:
            for row in await connection.fetch(_DEFINITIONS, *columns(plan.definitions, 2)):
                loaded.definitions.setdefault((row[0], row[1]), []).append(row_to_definition(row))

    def _settle_tasks(self) -> None:
        loaded, tasks = self.loaded, self.loaded.tasks
        holders = self.plan.held_by.union(loaded.expired_workers)
        loaded.held_tasks = [key for key in loaded.held_tasks if key in tasks and tasks[key].worker in holders]
        loaded.due_tasks = [key for key in loaded.due_tasks if key in tasks]
        loaded.task_claims = [
            [key for key in claimed if key in tasks and tasks[key].worker is None and not tasks[key].deferred]
            for claimed in loaded.task_claims
        ]

    async def _load_unread(self) -> None:
        plan, loaded, connection = self.plan, self.loaded, self.connection
        if plan.unread:
            found = list(
                await connection.fetch(_UNREAD, *columns([(key, asked[0]) for key, asked in plan.unread.items()], 2))
            )
            single = [(key, seq) for key, (_, seqs) in plan.unread.items() for seq in seqs]
            if single:
                found += await connection.fetch(_BY_SEQ, *columns(single, 2))
            loaded.unread = {key: [] for key in plan.unread}
            for row in sorted(found, key=lambda row: (row[0], row[1])):
                loaded.unread[row[0]].append(row_to_event(*row[1:]))
        if plan.calls_after:
            loaded.calls = {key: [] for key in plan.calls_after}
            for row in await connection.fetch(_GIVEN, *columns(plan.calls_after.items(), 2)):
                loaded.calls[row[0]].append(row_to_event(*row[1:]))
        if plan.dead_letters:
            for row in await connection.fetch(_DEAD_LETTERS, *columns(plan.dead_letters, 2)):
                loaded.dead_letters[row[0], row[1]] = row_to_dead_letter(row)


def _holder(execution: Execution | None) -> str | None:
    ready = execution.ready if execution is not None else None
    return ready.worker if ready is not None else None


def _is_claimable(execution: Execution | None, claim: TurnClaim, now: int) -> bool:
    if execution is None or execution.ready is None or execution.ready.worker is not None:
        return False
    build = claim.builds.get((execution.kind, execution.version))
    return build is not None and execution.queue in claim.queues and _is_time(execution.ready, build, now)


def _is_time(ready: Ready, build: str, now: int) -> bool:
    return ready.not_before_at <= now or (ready.avoid_build is not None and ready.avoid_build != build)


def _by_time(timer: TimerRow) -> tuple[int, str, int]:
    return timer.fire_at, timer.execution_id, timer.timer_no
