"""Rows as last committed, kept by the writer so that a busy execution is not read again for every operation.

Exact, not approximate: inside a transaction `PRAGMA data_version` tells whether any other connection has committed
since the last one; if so everything is forgotten. Records come in as they were read or after their commit, and are
copied on the way in and out, because decisions change them in place. A rolled-back transaction needs no undoing here.
Metadata and payloads are shared between the copies: nobody changes those in place.
"""

from __future__ import annotations

from collections import OrderedDict
from copy import copy
from typing import Final

from msgspec import Raw

from holdfast.model.executions import DefinitionRow, Execution, Ready, TaskRow, WorkerRow
from holdfast.store.protocol import Changes, TaskKey, WorkflowKey

MAX_EXECUTIONS: Final = 20_000
MAX_TASKS: Final = 20_000
MAX_KEYS: Final = 20_000
LARGE_PAYLOAD: Final = 16_384


def copy_of(execution: Execution) -> Execution:
    return _with_ready(execution, execution.ready)


def _with_ready(execution: Execution, ready: Ready | None) -> Execution:
    twin = copy(execution)
    twin.ready = copy(ready) if ready is not None else None
    return twin


class Cache:
    """What this process's writer knows of the database. Belongs to the writer thread."""

    def __init__(self) -> None:
        self._data_version = -1
        self.executions: OrderedDict[str, Execution] = OrderedDict()
        self.tasks = TaskCache()
        self.workflow_keys: OrderedDict[WorkflowKey, str] = OrderedDict()
        self.definitions: dict[tuple[str, str], list[DefinitionRow]] = {}
        self.workers: dict[str, WorkerRow] = {}

    def confirm(self, data_version: int) -> bool:
        """Forget everything if somebody else has written; answers whether somebody has."""
        if data_version == self._data_version:
            return False
        somebody = self._data_version != -1
        self.clear()
        self._data_version = data_version
        return somebody

    def clear(self) -> None:
        self._data_version = -1
        self.executions.clear()
        self.tasks.clear()
        self.workflow_keys.clear()
        self.definitions.clear()
        self.workers.clear()

    def absorb(self, changes: Changes) -> None:
        """Take over what has just been committed."""
        self._absorb_executions(changes)
        self._absorb_tasks(changes)
        self.workflow_keys.update(changes.workflow_keys)
        for definition in changes.definitions:
            self.definitions.pop((definition.org, definition.kind), None)
        self.workers.update({key: copy(worker) for key, worker in changes.workers.items()})
        for worker in changes.deleted_workers:
            self.workers.pop(worker, None)
        self._shrink()

    def _absorb_executions(self, changes: Changes) -> None:
        """Heads as they were handed in, but with the ready row that is in the database."""
        executions = self.executions
        for execution in changes.new_executions:
            executions[execution.id] = _with_ready(execution, None)
        for execution_id, execution in changes.changed_executions.items():
            known = executions.pop(execution_id, None)
            if known is not None:
                executions[execution_id] = _with_ready(execution, known.ready)
        for execution_id, execution in changes.ready.items():
            known = executions.get(execution_id)
            if known is not None:
                known.ready = copy(execution.ready) if execution.ready is not None else None

    def _absorb_tasks(self, changes: Changes) -> None:
        for task in changes.new_tasks:
            self.tasks.put(task)
        for task in changes.changed_tasks.values():
            self.tasks.put(task)
        for key in changes.deleted_tasks:
            self.tasks.drop(key)
        for execution_id in changes.purge:
            self.tasks.drop_all(execution_id)

    def _shrink(self) -> None:
        while len(self.executions) > MAX_EXECUTIONS:
            self.executions.popitem(last=False)
        while len(self.workflow_keys) > MAX_KEYS:
            self.workflow_keys.popitem(last=False)
        self.tasks.shrink()


def _is_large(payload: Raw) -> bool:
    return len(memoryview(payload)) > LARGE_PAYLOAD


class TaskCache:
    """Task rows by execution, so that all tasks of one can be forgotten at once. Large payloads are not kept."""

    def __init__(self) -> None:
        self._by_execution: OrderedDict[str, dict[int, TaskRow]] = OrderedDict()
        self._count = 0

    def get(self, key: TaskKey) -> TaskRow | None:
        tasks = self._by_execution.get(key[0])
        task = tasks.get(key[1]) if tasks is not None else None
        return copy(task) if task is not None else None

    def put(self, task: TaskRow) -> None:
        if _is_large(task.input) or (task.details is not None and _is_large(task.details)):
            self.drop((task.execution_id, task.task_no))
            return
        tasks = self._by_execution.setdefault(task.execution_id, {})
        if task.task_no not in tasks:
            self._count += 1
        tasks[task.task_no] = copy(task)
        self._by_execution.move_to_end(task.execution_id)

    def drop(self, key: TaskKey) -> None:
        tasks = self._by_execution.get(key[0])
        if tasks is None or tasks.pop(key[1], None) is None:
            return
        self._count -= 1
        if not tasks:
            del self._by_execution[key[0]]

    def drop_all(self, execution_id: str) -> None:
        self._count -= len(self._by_execution.pop(execution_id, ()))

    def shrink(self) -> None:
        while self._count > MAX_TASKS:
            _, tasks = self._by_execution.popitem(last=False)
            self._count -= len(tasks)

    def clear(self) -> None:
        self._by_execution.clear()
        self._count = 0
