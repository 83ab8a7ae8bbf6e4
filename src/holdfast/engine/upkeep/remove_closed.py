"""Remove executions that have been closed for long: heads, histories, dead letters, promises, everything.

The head goes first: without it nothing of the execution is found. A history that is too long for one transaction stays
behind then, and `Clear` removes it page by page.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.engine.operation import Operation
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.executions import Execution
from holdfast.store.protocol import LoadPlan

EVENTS_AT_ONCE: Final = 2_000
"""As many as one transaction removes without making others wait for long."""


class Over(NamedTuple):
    """Executions that were found closed before an instant."""

    ids: tuple[str, ...]
    before: int


class RemoveClosed(Operation[Over, int]):
    """Answers how many are gone. One that somebody else is at work on stays for the next time."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.idle_executions.update(self.request.ids)

    def decide(self, uow: UnitOfWork) -> int:
        gone = 0
        for execution_id in self.request.ids:
            execution = uow.loaded.executions.get(execution_id)
            if execution is not None and self._is_over(uow, execution):
                _remove(uow, execution)
                gone += 1
        return gone

    def _is_over(self, uow: UnitOfWork, execution: Execution) -> bool:
        closed_at = execution.closed_at
        if closed_at is None or closed_at >= self.request.before or execution.open_children:
            return False
        return execution.id not in uow.changes.changed_executions and execution.id not in uow.changes.removed


def _remove(uow: UnitOfWork, execution: Execution) -> None:
    """What comes after it in the same batch does not find it any more."""
    uow.changes.removed[execution.id] = execution
    if execution.last_seq > EVENTS_AT_ONCE:
        uow.changes.remains.add(execution.id)
    del uow.loaded.executions[execution.id]
    key = execution.org, execution.workflow_id
    if uow.loaded.workflow_keys.get(key) == execution.id:
        del uow.loaded.workflow_keys[key]


class Clear(Operation[None, None]):
    """Remove a page of what executions have left behind, whoever has removed them."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        """Nothing is loaded: nobody else can change it."""

    def decide(self, uow: UnitOfWork) -> None:
        uow.changes.cleared = EVENTS_AT_ONCE
