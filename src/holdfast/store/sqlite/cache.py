"""Rows as last committed, kept by the writer so that a busy execution is not read again for every operation.

Exact, not approximate: inside a transaction `PRAGMA data_version` tells whether any other connection has committed
since the last one; if so everything is forgotten. Records are lent to the decision, which changes them in place and
says what it changed; after the commit they are what is in the database. After a rollback nobody knows what they are, so
then, too, everything is forgotten. Copying them in and out instead cost a fifth of the writer's time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Raw

from holdfast.model.executions import DefinitionRow, Execution, TaskRow, WorkerRow
from holdfast.store.protocol import Changes, TaskKey, WorkflowKey

MAX_EXECUTIONS: Final = 20_000
MAX_TASKS: Final = 20_000
MAX_KEYS: Final = 20_000
LARGE_PAYLOAD: Final = 16_384


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
        if changes.purged_orgs:
            self.clear()  # nobody has said which rows are gone
            return
        self._absorb_executions(changes)
        self._absorb_tasks(changes)
        self.workflow_keys.update(changes.workflow_keys)
        for execution_row in changes.removed.values():
            self.executions.pop(execution_row.id, None)
            if self.workflow_keys.get((execution_row.org, execution_row.workflow_id)) == execution_row.id:
                del self.workflow_keys[execution_row.org, execution_row.workflow_id]
        for definition in changes.definitions:
            self.definitions.pop((definition.org, definition.kind), None)
        self.workers.update(changes.workers)
        for worker in changes.deleted_workers:
            self.workers.pop(worker, None)
        self._shrink()

    def _absorb_executions(self, changes: Changes) -> None:
        executions = self.executions
        for execution in changes.new_executions:
            executions[execution.id] = execution
        for execution_id, execution in changes.changed_executions.items():
            executions[execution_id] = execution
            executions.move_to_end(execution_id)

    def _absorb_tasks(self, changes: Changes) -> None:
        for task in changes.new_tasks:
            self.tasks.put(task)
        for task in changes.changed_tasks.values():
            self.tasks.put(task)
        for key in changes.deleted_tasks:
            self.tasks.drop(key)
        for execution_id in (*changes.purge, *changes.removed):
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
        return tasks.get(key[1]) if tasks is not None else None

    def put(self, task: TaskRow) -> None:
        if _is_large(task.input) or (task.details is not None and _is_large(task.details)):
            self.drop((task.execution_id, task.task_no))
            return
        tasks = self._by_execution.setdefault(task.execution_id, {})
        if task.task_no not in tasks:
            self._count += 1
        tasks[task.task_no] = task
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
