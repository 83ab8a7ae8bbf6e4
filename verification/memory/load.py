"""Answers a batch's plan: everything it names, and the executions that those rows belong to."""

from __future__ import annotations

from itertools import islice
from operator import attrgetter

from holdfast.model.events import HistoryEvent, SignalReceived, UpdateRequested
from holdfast.model.executions import DeadLetter, Ready
from holdfast.model.values import NULL
from holdfast.store.protocol import Loaded, LoadPlan, TaskClaim, TaskKey, TurnClaim
from verification.memory.database import MemoryDatabase, copied
from verification.memory.load_messages import load_messages

_about_messages = attrgetter(
    "tokens",
    "waits",
    "matches",
    "promises",
    "named_promises",
    "look_backs",
    "published",
    "dead_events",
    "expired_events",
    "event_keys",
    "numbering",
)
_UNREAD = (SignalReceived, UpdateRequested)
_GIVEN = frozenset(
    {
        "SIGNAL_RECEIVED",
        "UPDATE_REQUESTED",
        "PROMISE_RESOLVED",
        "PROMISE_REJECTED",
        "EVENT_RECEIVED",
        "BROADCAST_RECEIVED",
    }
)


def load(database: MemoryDatabase, plan: LoadPlan, now: int) -> Loaded:
    return _Load(database, plan, now).run()


class _Load:
    """One load. Rows that refer to executions and tasks come first and add to what is wanted."""

    def __init__(self, database: MemoryDatabase, plan: LoadPlan, now: int) -> None:
        self.database = database
        self.plan = plan
        self.loaded = Loaded(now=now)
        self.executions = plan.executions | plan.idle_executions
        self.tasks = set(plan.tasks)

    def run(self) -> Loaded:
        plan = self.plan
        if plan.requests or plan.expired_requests:
            self._requests()
        if plan.workflow_keys:
            self._workflow_keys()
        if plan.workers or plan.expired_workers or plan.held_by:
            self._workers()
        if plan.turn_claims:
            self._turn_claims()
        if plan.task_claims:
            self._task_claims()
        if plan.due_timers or plan.due_tasks:
            self._due()
        if plan.timers:
            self._timers()
        self._messages()
        if self.tasks:
            self._tasks()
        if plan.children or plan.orphans:
            self._children()
        self._executions()
        if plan.unread or plan.calls_after or plan.dead_letters:
            self._events()
        if plan.definitions:
            self._definitions()
        if plan.orgs or plan.keys or plan.pauses:
            self._keys()
        return self.loaded

    def _messages(self) -> None:
        plan, loaded = self.plan, self.loaded
        if not (loaded.due_timers or (plan.deliveries and self.database.deliveries) or any(_about_messages(plan))):
            return
        due = {(timer.execution_id, timer.promise) for timer in loaded.due_timers if timer.promise is not None}
        load_messages(
            self.database,
            plan,
            loaded,
            executions=self.executions,
            tasks=self.tasks,
            promises=due | plan.promises,
        )

    def _keys(self) -> None:
        plan, database, loaded = self.plan, self.database, self.loaded
        loaded.orgs = {slug: database.orgs[slug] for slug in plan.orgs if slug in database.orgs}
        loaded.keys = {key: database.keys[key] for key in plan.keys if key in database.keys}
        loaded.pauses = {key: database.pauses[key] for key in plan.pauses if key in database.pauses}

    def _requests(self) -> None:
        database, now = self.database, self.loaded.now
        if self.plan.expired_requests:
            over = sorted((row.expires_at, key) for key, row in database.requests.items() if row.expires_at <= now)
            keys = (key for _, key in over if not self._is_used(key))
            self.loaded.expired_requests = list(islice(keys, self.plan.expired_requests))
        for key in self.plan.requests:
            row = database.requests.get(key)
            if row is not None:
                self.loaded.requests[key] = row
                if row.execution_id is not None:
                    self.executions.add(row.execution_id)

    def _is_used(self, key: tuple[str, str]) -> bool:
        """Whether what the request has started is not over for long enough."""
        row = self.database.requests[key]
        execution_row = self.database.execution_rows.get(row.execution_id or "")
        return execution_row is not None and (
            execution_row.closed_at is None or execution_row.closed_at + row.ttl > self.loaded.now
        )

    def _workflow_keys(self) -> None:
        known = self.database.workflow_keys
        self.loaded.workflow_keys = {key: known[key] for key in self.plan.workflow_keys if key in known}
        self.executions.update(self.loaded.workflow_keys.values())

    def _workers(self) -> None:
        loaded, database, plan = self.loaded, self.database, self.plan
        loaded.workers = {key: copied(database.workers[key]) for key in plan.workers if key in database.workers}
        if plan.expired_workers:
            for key in sorted([key for key, row in database.workers.items() if row.lease_until_at <= loaded.now]):
                loaded.workers.setdefault(key, copied(database.workers[key]))
                loaded.expired_workers.append(key)
            holders = {row.worker for row in database.ready.values()} | {row.worker for row in database.tasks.values()}
            orphaned = [key for key in holders if key is not None and key not in database.workers]
            loaded.expired_workers.extend(sorted(orphaned))
        holding = plan.held_by.union(loaded.expired_workers)
        if holding:
            loaded.held_turns = sorted(key for key, row in database.ready.items() if row.worker in holding)
            loaded.held_tasks = sorted(key for key, row in database.tasks.items() if row.worker in holding)
            self.executions.update(loaded.held_turns)
            self.tasks.update(loaded.held_tasks)

    def _turn_claims(self) -> None:
        waiting = [(key, row) for key, row in self.database.ready.items() if row.worker is None]
        if not waiting:
            self.loaded.turn_claims.extend([] for _ in self.plan.turn_claims)
            return
        taken: set[str] = set()
        for claim in self.plan.turn_claims:
            claimable = (key for key in self._claimable_turns(claim, waiting) if key not in taken)
            found = list(islice(claimable, max(claim.limit, 0)))
            taken.update(found)
            self.loaded.turn_claims.append(found)
        self.executions.update(taken)

    def _claimable_turns(self, claim: TurnClaim, waiting: list[tuple[str, Ready]]) -> list[str]:
        found: list[tuple[int, int, str]] = []
        suspects: list[tuple[int, int, str]] = []
        for key, row in waiting:
            execution_row = self.database.execution_rows[key]
            build = claim.builds.get((execution_row.kind, execution_row.version))
            if build is None or execution_row.org != claim.org or execution_row.queue not in claim.queues:
                continue
            if row.not_before_at <= self.loaded.now or (row.avoid_build is not None and row.avoid_build != build):
                among = suspects if execution_row.crashes >= claim.suspect_from else found
                waited_us = self.loaded.now - row.since_at
                if (
                    among is found
                    and claim.sticky is not None
                    and claim.sticky.skips(key, execution_row.last_seq, waited_us)
                ):
                    self.loaded.turns_left = True
                    continue
                among.append((-execution_row.priority, row.since_at, key))
        return [key for _, _, key in sorted([*found, *sorted(suspects)[: claim.suspects]])]

    def _task_claims(self) -> None:
        if not self.database.tasks:
            self.loaded.task_claims.extend([] for _ in self.plan.task_claims)
            return
        taken: set[TaskKey] = set()
        for claim in self.plan.task_claims:
            found = list(islice((key for key in self._claimable_tasks(claim) if key not in taken), max(claim.limit, 0)))
            taken.update(found)
            self.loaded.task_claims.append(found)
        self.tasks.update(taken)

    def _claimable_tasks(self, claim: TaskClaim) -> list[TaskKey]:
        found = [
            (-row.priority, max(row.not_before_at, row.scheduled_at), key)
            for key, row in self.database.tasks.items()
            if row.worker is None
            and not row.deferred
            and row.org == claim.org
            and row.queue in claim.queues
            and row.kind in claim.kinds
            and row.not_before_at <= self.loaded.now
        ]
        return [key for _, _, key in sorted(found)]

    def _due(self) -> None:
        loaded, database, now = self.loaded, self.database, self.loaded.now
        timers = sorted([(row.fire_at, key) for key, row in database.timers.items() if row.fire_at <= now])
        for _, key in timers[: self.plan.due_timers]:
            loaded.due_timers.append(database.timers[key])
            loaded.timers[key] = database.timers[key]
            self.executions.add(key[0])
        tasks = sorted(
            [(row.due_at, key) for key, row in database.tasks.items() if row.due_at is not None and row.due_at <= now]
        )
        loaded.due_tasks = [key for _, key in tasks[: self.plan.due_tasks]]
        self.tasks.update(loaded.due_tasks)

    def _timers(self) -> None:
        for key in self.plan.timers:
            if key in self.database.timers:
                self.loaded.timers[key] = self.database.timers[key]
            self.executions.add(key[0])

    def _tasks(self) -> None:
        for key in sorted(self.tasks):
            if key in self.database.tasks:
                self.loaded.tasks[key] = copied(self.database.tasks[key])
            self.executions.add(key[0])

    def _children(self) -> None:
        database, loaded, wanted = self.database, self.loaded, self.plan.children
        for execution_row in database.execution_rows.values() if wanted else ():
            key = (execution_row.parent_id or "", execution_row.child_no)
            if key in wanted and execution_row.closed_at is None:
                loaded.children[key] = execution_row.id
                self.executions.add(execution_row.id)
        if not self.plan.orphans:
            return
        found: list[tuple[str, str | None]] = []
        for execution_row in database.execution_rows.values():
            if execution_row.open_children > 0 and execution_row.closed_at is not None:
                bound = [child.id for child in database.execution_rows.values() if _is_bound(child, execution_row.id)]
                found += [(execution_row.id, child) for child in sorted(bound)] or [(execution_row.id, None)]
        loaded.orphans = sorted(found, key=lambda pair: (pair[0], pair[1] or ""))[: self.plan.orphans]
        for parent, child in loaded.orphans:
            self.executions.update({parent} if child is None else {parent, child})

    def _executions(self) -> None:
        """An open child brings its parent along, which hears of its end; a parent does not bring its own."""
        if not self.executions:
            return
        found, execution_row = self.loaded.executions, self.database.execution_row
        parents = set()
        for key in sorted(self.executions):
            execution = execution_row(key)
            if execution is not None:
                found[key] = execution
                if execution.parent_id is not None and execution.is_open:
                    parents.add(execution.parent_id)
        for key in sorted(parents - found.keys()):
            parent = execution_row(key)
            if parent is not None:
                found[key] = parent

    def _events(self) -> None:
        loaded, history = self.loaded, self.database.history
        for key, (after, seqs) in self.plan.unread.items():
            loaded.unread[key] = [
                event
                for event in history(key)
                if event.seq in seqs or (event.seq > after and isinstance(event.body, _UNREAD))
            ]
        for key, after in self.plan.calls_after.items():
            loaded.calls[key] = [event for event in history(key) if event.seq > after and event.type in _GIVEN]
        for at in self.plan.dead_letters:
            letter = self.database.dead_letters.get(at)
            if letter is not None:
                loaded.dead_letters[at] = with_signal(self.database, letter)

    def _definitions(self) -> None:
        rows = sorted(self.database.definitions.items())
        for key in self.plan.definitions:
            found = [row for at, row in rows if at[:2] == key]
            if found:
                self.loaded.definitions[key] = found


def _is_bound(child: object, parent_id: str) -> bool:
    return (
        getattr(child, "parent_id", None) == parent_id
        and getattr(child, "closed_at", 0) is None
        and getattr(child, "on_parent_close", None) not in {"abandon", None}
    )


def with_signal(database: MemoryDatabase, letter: DeadLetter) -> tuple[DeadLetter, SignalReceived | None]:
    """With what the signal was, which the history knows."""
    event: HistoryEvent | None = database.events.get(letter.execution_id, {}).get(letter.seq)
    signal = event.body if event is not None and isinstance(event.body, SignalReceived) else None
    whole = DeadLetter(
        execution_id=letter.execution_id,
        seq=letter.seq,
        org=letter.org,
        reason=letter.reason,
        at=letter.at,
        settled=letter.settled,
        signal_name=signal.signal_name if signal is not None else "",
        signal_value=signal.signal_value if signal is not None else NULL,
        received_at=event.at if event is not None else 0,
    )
    return whole, signal
