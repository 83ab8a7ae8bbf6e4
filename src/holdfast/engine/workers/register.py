"""Open a worker session and make its workflow kinds known, with the events that start them."""

from __future__ import annotations

from holdfast.contract.workers import RegisterWorker
from holdfast.engine.operation import Operation
from holdfast.engine.rules.starts import choose_version
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import InvalidRequest
from holdfast.expressions import compile_filter
from holdfast.model.executions import DefinitionRow, WorkerRow
from holdfast.model.messages import TriggerRow
from holdfast.model.standalone import PREFIX, TASK_WORKFLOW, is_reserved, known_as
from holdfast.model.validation import check_name
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan

TASK_VERSION = "1"
"""Kinds of tasks have no versions; their rows among the definitions need one."""


class Register(Operation[RegisterWorker, None]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.workers.add(self.request.session)
        for kind, _ in self.request.builds:
            plan.definitions.add((self.request.org, kind))
        for kind in self.request.task_kinds:
            plan.definitions.add((self.request.org, known_as(kind)))

    def decide(self, uow: UnitOfWork) -> None:
        request = self.request
        uow.changes.workers[request.session] = WorkerRow(
            id=request.session,
            org=request.org,
            host=request.host,
            pid=request.pid,
            started_at=uow.now,
            lease_until_at=uow.now + int(request.lease_s * MICRO),
        )
        tasks = {(known_as(kind), TASK_VERSION): "" for kind in request.task_kinds}
        for (kind, version), build in {**request.builds, **tasks}.items():
            known = uow.loaded.definitions.setdefault((request.org, kind), [])
            if not any(row.version == version and row.build == build for row in known):
                row = DefinitionRow(org=request.org, kind=kind, version=version, build=build, registered_at=uow.now)
                known.append(row)
                uow.changes.definitions.append(row)
        self._replace_triggers(uow)

    def _replace_triggers(self, uow: UnitOfWork) -> None:
        """Those of the newest version of a kind count, even if it has none: an older worker that is still there, or
        comes back, changes nothing."""
        request = self.request
        newest = {kind: choose_version(uow, request.org, kind, None) for kind, _ in request.builds}
        ours = {kind for kind, version in request.builds if newest[kind] == version}
        uow.changes.untriggered.update((request.org, kind) for kind in ours)
        kept = [row for row in uow.changes.triggers if row.org != request.org or row.kind not in ours]
        uow.changes.triggers[:] = kept + [
            TriggerRow(
                org=request.org,
                key=trigger.key,
                kind=trigger.kind,
                version=trigger.version,
                queue=trigger.queue,
                where=trigger.where,
            )
            for trigger in request.triggers
            if trigger.kind in ours and newest[trigger.kind] == trigger.version
        ]


def check_kinds(request: RegisterWorker) -> None:
    """What begins like the engine's own names must be the engine's own."""
    for field, kinds in (("builds", [kind for kind, _ in request.builds]), ("task_kinds", request.task_kinds)):
        for kind in kinds:
            if is_reserved(kind) and (field, kind) != ("builds", TASK_WORKFLOW):
                raise InvalidRequest(
                    f"kinds that begin with {PREFIX!r} are the engine's own, and it has none called {kind!r:.60}: take "
                    "another name",
                    field=field,
                )


def check_triggers(request: RegisterWorker) -> None:
    """A filter that can't be read, or a workflow that the worker does not have, is refused at the door."""
    for trigger in request.triggers:
        check_name(trigger.key, "key")
        check_name(trigger.queue, "queue")
        if (trigger.kind, trigger.version) not in request.builds:
            raise InvalidRequest(f"this worker does not have workflow {trigger.kind!r}", field="triggers")
        if trigger.where is not None:
            compile_filter(trigger.where)
