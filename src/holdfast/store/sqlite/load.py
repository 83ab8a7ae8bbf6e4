"""Answers a batch's plan inside its transaction: from the cache where that is exact, else one query per table."""

from __future__ import annotations

import json
import sqlite3

from holdfast.store.claim_cursors import ClaimCursors
from holdfast.store.protocol import Loaded, LoadPlan
from holdfast.store.rows import (
    row_to_dead_letter,
    row_to_definition,
    row_to_event,
    row_to_execution,
    row_to_request,
    row_to_task,
    row_to_timer,
    row_to_worker,
)
from holdfast.store.sqlite.cache import Cache
from holdfast.store.sqlite.claims import Claims
from holdfast.store.sqlite.keys import load_keys
from holdfast.store.sqlite.load_messages import MessageLoad
from holdfast.store.sqlite.pauses import load_pauses
from holdfast.store.sqlite.statements import rows, statement

_EXECUTIONS = rows("executions", "by_id")
_WORKFLOW_KEYS = rows("workflow_keys", "by_key")
_TASKS = rows("tasks", "by_key")
_TIMERS = rows("timers", "by_key")
_REQUESTS = rows("requests", "by_id")
_EXPIRED_REQUESTS = statement("requests", "expired")
_WORKERS = rows("workers", "by_id")
_DEFINITIONS = rows("definitions", "by_kind")
_HELD_TURNS = rows("ready", "held")
_HELD_TASKS = rows("tasks", "held")
_CHILDREN = rows("executions", "open_children")
_ORPHANS = statement("executions", "orphans")
_UNREAD = statement("events", "unread")
_GIVEN = statement("events", "given")
_BY_SEQ = statement("events", "by_seq")
_DEAD_LETTERS = rows("dead_letters", "by_key")
_DUE_TIMERS = statement("timers", "due")
_DUE_TASKS = statement("tasks", "due")
_EXPIRED_WORKERS = statement("workers", "expired")
_ORPHANED_WORKERS = statement("workers", "orphaned")


def load(
    connection: sqlite3.Connection, plan: LoadPlan, cache: Cache, now: int, claim_cursors: ClaimCursors | None = None
) -> Loaded:
    """Everything the plan names, and the executions that those rows belong to. `claim_cursors` are what earlier claims
    have learned."""
    loaded = _Load(connection, plan, cache, now, claim_cursors or ClaimCursors()).run()
    if plan.orgs or plan.keys:
        load_keys(connection, plan, loaded)
    if plan.pauses:
        load_pauses(connection, plan, loaded)
    return loaded


class _Load:
    """One load. Rows that refer to executions and tasks come first and add to what is wanted."""

    def __init__(
        self, connection: sqlite3.Connection, plan: LoadPlan, cache: Cache, now: int, claim_cursors: ClaimCursors
    ) -> None:
        self.connection = connection
        self.plan = plan
        self.cache = cache
        self.loaded = Loaded(now=now)
        self.executions = plan.executions | plan.idle_executions
        self.tasks = set(plan.tasks)
        self.claims = Claims(connection, self.loaded, claim_cursors)

    def run(self) -> Loaded:
        plan = self.plan
        if plan.requests or plan.expired_requests:
            self.load_requests()
        if plan.workflow_keys:
            self.load_workflow_keys()
        if plan.workers or plan.expired_workers or plan.held_by:
            self.load_workers()
        if plan.turn_claims:
            self.executions |= self.claims.turns(plan.turn_claims)
        if plan.task_claims:
            self.tasks |= self.claims.tasks(plan.task_claims)
        if plan.due_timers or plan.due_tasks:
            self.load_due()
        if plan.timers:
            self.load_timers()
        self.load_messages()
        if self.tasks:
            self.load_tasks()
        if plan.children or plan.orphans:
            self.load_children()
        if self.executions:
            self.load_executions(self.executions)
            self.load_parents()
        if plan.unread or plan.calls_after or plan.dead_letters:
            self.load_unread()
        if plan.definitions:
            self.load_definitions()
        return self.loaded

    def load_workflow_keys(self) -> None:
        found, known = self.loaded.workflow_keys, self.cache.workflow_keys
        missing = []
        for key in self.plan.workflow_keys:
            execution_id = known.get(key)
            if execution_id is None:
                missing.append(key)
            else:
                found[key] = execution_id
        for org, workflow_id, execution_id in _WORKFLOW_KEYS.fetch(self.connection, sorted(missing)):
            found[org, workflow_id] = known[org, workflow_id] = execution_id
        self.executions.update(found.values())

    def load_workers(self) -> None:
        loaded, known = self.loaded, self.cache.workers
        missing = []
        for worker_id in self.plan.workers:
            worker = known.get(worker_id)
            if worker is None:
                missing.append((worker_id,))
            else:
                loaded.workers[worker_id] = worker
        for row in _WORKERS.fetch(self.connection, missing):
            loaded.workers[row[0]] = known[row[0]] = row_to_worker(row)
        if self.plan.expired_workers:
            for row in self.connection.execute(_EXPIRED_WORKERS, (loaded.now,)).fetchall():
                loaded.workers.setdefault(row[0], row_to_worker(row))
                loaded.expired_workers.append(row[0])
            orphaned = self.connection.execute(_ORPHANED_WORKERS).fetchall()
            loaded.expired_workers.extend(worker for (worker,) in orphaned)
        self.load_held()

    def load_held(self) -> None:
        holders = [(worker,) for worker in sorted(self.plan.held_by.union(self.loaded.expired_workers))]
        turns = _HELD_TURNS.fetch(self.connection, holders)
        self.loaded.held_turns = [execution_id for (execution_id,) in turns]
        self.loaded.held_tasks = [(row[0], row[1]) for row in _HELD_TASKS.fetch(self.connection, holders)]
        self.executions.update(self.loaded.held_turns)
        self.tasks.update(self.loaded.held_tasks)

    def load_due(self) -> None:
        loaded, now = self.loaded, self.loaded.now
        for row in self.connection.execute(_DUE_TIMERS, (now, self.plan.due_timers)).fetchall():
            timer = loaded.timers[row[0], row[1]] = row_to_timer(row)
            loaded.due_timers.append(timer)
            self.executions.add(timer.execution_id)
        for row in self.connection.execute(_DUE_TASKS, (now, self.plan.due_tasks)).fetchall():
            loaded.due_tasks.append((row[0], row[1]))
            self.tasks.add((row[0], row[1]))

    def load_messages(self) -> None:
        due = {(timer.execution_id, timer.promise) for timer in self.loaded.due_timers if timer.promise is not None}
        MessageLoad(
            self.connection, self.plan, self.loaded, executions=self.executions, tasks=self.tasks, due_promises=due
        ).run()

    def load_timers(self) -> None:
        for row in _TIMERS.fetch(self.connection, sorted(self.plan.timers)):
            self.loaded.timers[row[0], row[1]] = row_to_timer(row)
        self.executions.update(execution_id for execution_id, _ in self.plan.timers)

    def load_tasks(self) -> None:
        missing = []
        for key in self.tasks:
            task = self.cache.tasks.get(key)
            if task is None:
                missing.append(key)
            else:
                self.loaded.tasks[key] = task
            self.executions.add(key[0])
        for row in _TASKS.fetch(self.connection, sorted(missing)):
            self.loaded.tasks[row[0], row[1]] = row_to_task(row)

    def load_children(self) -> None:
        wanted = sorted(self.plan.children)
        for (execution_id,) in _CHILDREN.fetch(self.connection, wanted) if wanted else ():
            self.executions.add(execution_id)
            self.load_executions({execution_id})
            child = self.loaded.executions[execution_id]
            assert child.parent_id is not None, "found by its parent"
            self.loaded.children[child.parent_id, child.child_no] = execution_id
        if self.plan.orphans:
            self.loaded.orphans = self.connection.execute(_ORPHANS, (self.plan.orphans,)).fetchall()
            for parent, orphaned_child in self.loaded.orphans:
                self.executions.add(parent)
                if orphaned_child is not None:
                    self.executions.add(orphaned_child)

    def load_parents(self) -> None:
        """An open child brings its parent along, which hears of its end; a parent does not bring its own."""
        loaded = self.loaded.executions
        parents = {child.parent_id for child in loaded.values() if child.parent_id is not None and child.is_open}
        missing = parents - loaded.keys()
        if missing:
            self.load_executions(missing)

    def load_unread(self) -> None:
        for execution_id, (after, seqs) in self.plan.unread.items():
            found = self.connection.execute(_UNREAD, (execution_id, after)).fetchall()
            if seqs:
                found += self.connection.execute(_BY_SEQ, (execution_id, json.dumps(seqs))).fetchall()
            self.loaded.unread[execution_id] = [row_to_event(*row) for row in sorted(found)]
        for execution_id, after in self.plan.calls_after.items():
            found = self.connection.execute(_GIVEN, (execution_id, after)).fetchall()
            self.loaded.calls[execution_id] = [row_to_event(*row) for row in found]
        for row in _DEAD_LETTERS.fetch(self.connection, sorted(self.plan.dead_letters)):
            self.loaded.dead_letters[row[0], row[1]] = row_to_dead_letter(row)

    def load_executions(self, wanted: set[str]) -> None:
        found, known = self.loaded.executions, self.cache.executions
        missing = []
        for execution_id in wanted:
            execution = known.get(execution_id)
            if execution is None:
                missing.append(execution_id)
            else:
                found[execution_id] = execution
        if missing:
            missing.sort()
            for row in _EXECUTIONS.fetch(self.connection, [(execution_id,) for execution_id in missing]):
                known[row[0]] = found[row[0]] = row_to_execution(row)

    def load_requests(self) -> None:
        """First: what they have started counts for how long they do."""
        if self.plan.expired_requests:
            page = (self.loaded.now, self.loaded.now, self.plan.expired_requests)
            self.loaded.expired_requests = self.connection.execute(_EXPIRED_REQUESTS, page).fetchall()
        for row in _REQUESTS.fetch(self.connection, sorted(self.plan.requests)):
            found = self.loaded.requests[row[0], row[1]] = row_to_request(row)
            if found.execution_id is not None:
                self.executions.add(found.execution_id)

    def load_definitions(self) -> None:
        known = self.cache.definitions
        missing = [key for key in self.plan.definitions if key not in known]
        known.update({key: [] for key in missing})
        for row in _DEFINITIONS.fetch(self.connection, sorted(missing)):
            known[row[0], row[1]].append(row_to_definition(row))
        for key in self.plan.definitions:
            if known[key]:
                self.loaded.definitions[key] = list(known[key])
