"""The seam between the engine and a database.

Writing: the engine's `BatchSource` hands out batches of operations. For each the store opens one transaction, loads
what the batch's `plan` names (with locks, where the database has them), lets the batch `decide` (pure), writes the
`Changes` and commits. Only then is the batch told `committed`. A transaction that fails as a whole (busy, lost
connection) is repeated whole, from a fresh load, until a deadline; one that fails because of its content is split and
its members are run alone, so that only the guilty one fails.

Reading: snapshots of what is committed, never inside a write transaction.

Time: a store's `clock` is the only clock that counts for leases, timers and event times.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import field

from holdfast.model.events import HistoryEvent, SignalReceived
from holdfast.model.executions import (
    DeadLetter,
    DefinitionRow,
    Execution,
    OutputRow,
    RequestRow,
    TaskRow,
    TimerRow,
    WorkerRow,
    WorkflowStatus,
)
from holdfast.model.keys import ApiKey, AuditRow, Org
from holdfast.model.messages import (
    DeadEvent,
    DeliveryRow,
    EventKeyRow,
    PromiseRow,
    PublishedRow,
    SubscriptionKind,
    SubscriptionRow,
    TokenRow,
    TriggerRow,
)
from holdfast.model.pauses import Pause, PauseKey
from holdfast.store.closed_pages import ClosedPage
from holdfast.store.queries import Backlog, ExecutionQuery, Inconsistency, Vitals

Clock = Callable[[], int]
TaskKey = tuple[str, int]
WorkflowKey = tuple[str, str]


class StickyPolicy(msgspec.Struct, frozen=True):
    """What a claim leaves to somebody else for a moment: executions with `min_events` events or more that have waited
    for less than `sticky_us`, unless they are `cached`."""

    min_events: int
    sticky_us: int
    cached: tuple[AbstractSet[str], ...] = ()

    def skips(self, execution_id: str, last_seq: int, waited_us: int) -> bool:
        return last_seq >= self.min_events and waited_us < self.sticky_us and not self.is_cached(execution_id)

    def is_cached(self, execution_id: str) -> bool:
        return any(execution_id in kept for kept in self.cached)


class TurnClaim(msgspec.Struct, frozen=True):
    """Ask for up to `limit` unleased ready rows: highest priority first, then the longest waiting.

    `builds` maps (kind, version) to this worker's build of it; rows of other kinds are left alone. A row is claimable
    when `not_before_at` has passed, or when its `avoid_build` is set and differs from the worker's build of that kind.
    Of executions with `crashes` of `suspect_from` or more it is given the first `suspects` at most; what is to be left
    to others (`sticky`) does not count for these.
    """

    org: str
    queues: tuple[str, ...]
    builds: dict[tuple[str, str], str]
    limit: int
    sticky: StickyPolicy | None = None
    suspect_from: int = 2**31
    suspects: int = 0


class TaskClaim(msgspec.Struct, frozen=True):
    """Ask for up to `limit` tasks without a worker whose `not_before_at` has passed.

    Highest priority first, then by the moment they became runnable, so that retries neither starve nor are starved.
    """

    org: str
    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMatch:
    """Ask for up to `limit` waits that an event, message or broadcast may settle, in the order of waiting: those that
    demand no equality, and those that demand a value which `value_at` finds at their path.

    Only waits with a number above `after` and, if given, below `bound`.
    """

    org: str
    kind: SubscriptionKind
    key: str
    value_at: Callable[[str], str | None]
    after: int = 0
    bound: int | None = None
    limit: int


class LookBack(Protocol):
    """Ask for kept events of a key, for waits that look back: those after a number and since a time, as many as
    `choose` wants."""

    @property
    def after(self) -> int: ...

    @property
    def since_at(self) -> int: ...

    def choose(self, events: Iterator[PublishedRow], spare: int) -> dict[Any, list[PublishedRow]]:
        """What each of the waits may have of the kept events, which come one after another, the oldest first: one for
        every wait and `spare` more, because that many may be gone before their turn comes."""
        ...


LookBackKey = tuple[str, str, str | None]
"""Org, key and correlation of kept events."""


class LoadPlan(msgspec.Struct):
    """What a batch needs to see. Executions always come with their ready row.

    `timers` are single timers by (execution id, timer number), as `due_timers` is a page of those that are due.
    `children` are open children by (parent id, number); `orphans` is a page of open children whose parent has closed.
    `unread` wants signals and updates of an execution: those after a number, and single ones; `calls_after` all that it
    was given from outside after a number: signals, updates, settled promises, events, broadcasts.
    `topics` are the (org, key) of waits that may begin: nobody else may publish, throw or wait there meanwhile. Those
    of `matches`, `look_backs` and `event_keys` need not be named again.
    """

    executions: set[str] = field(default_factory=set)
    idle_executions: set[str] = field(default_factory=set)
    """Those of them that nobody else is at work on."""
    workflow_keys: set[WorkflowKey] = field(default_factory=set)
    tasks: set[TaskKey] = field(default_factory=set)
    timers: set[TaskKey] = field(default_factory=set)
    requests: set[tuple[str, str]] = field(default_factory=set)
    workers: set[str] = field(default_factory=set)
    definitions: set[tuple[str, str]] = field(default_factory=set)
    children: set[TaskKey] = field(default_factory=set)
    unread: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    calls_after: dict[str, int] = field(default_factory=dict)
    dead_letters: set[TaskKey] = field(default_factory=set)
    promises: set[tuple[str, str]] = field(default_factory=set)
    named_promises: set[tuple[str, str, str]] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    waits: set[TaskKey] = field(default_factory=set)
    matches: list[EventMatch] = field(default_factory=list)
    look_backs: dict[LookBackKey, LookBack] = field(default_factory=dict)
    event_keys: set[tuple[str, str]] = field(default_factory=set)
    topics: set[tuple[str, str]] = field(default_factory=set)
    orgs: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    pauses: set[PauseKey] = field(default_factory=set)
    """Whoever changes one names its org, too: that is its lock."""
    retained_per_key: int = 0
    published: set[int] = field(default_factory=set)
    dead_events: set[int] = field(default_factory=set)
    expired_events: int = 0
    expired_requests: int = 0
    deliveries: int = 0
    numbering: bool = False
    due_timers: int = 0
    due_tasks: int = 0
    orphans: int = 0
    turn_claims: list[TurnClaim] = field(default_factory=list)
    task_claims: list[TaskClaim] = field(default_factory=list)
    expired_workers: bool = False
    held_by: set[str] = field(default_factory=set)


class Loaded(msgspec.Struct):
    """What was found. `now` is the store's time at the beginning of the transaction.

    Whatever refers to an execution (a key, a due timer, a claimed row, a held task, an open child) brings that
    execution along; a task or timer named in the plan does so even if its own row is gone. Records are the batch's own:
    it may change them.
    `turn_claims[i]` and `task_claims[i]` answer the plan's i-th claim; a row is handed to one claim only. `turns_left`:
    some were left to others. `claim_again_at`: some may have been passed by that will be found then (see
    `claim_cursors`). `due_timers`, too, are in `timers`.
    `orphans` are (parent id, child id), with None for a parent that has no such child left.
    `matches[i]` answers the plan's i-th match with numbers of `subscriptions`. `under_way` are the (org, kind, key) of
    the plan's matches that a delivery is on its way to. `deliveries` are the oldest one of each key, with its next page
    and whether there may be more of it; all pages together are about as long as the plan says.
    `last_id`: numbers above it are the batch's own, if the plan asks for numbering. In one topic they are higher than
    all that were given before.
    `expired_workers` have a `lease_until_at` of `now` or earlier. `held_turns`/`held_tasks` are those leased by a
    worker in `held_by` or by an expired one.
    """

    now: int
    executions: dict[str, Execution] = field(default_factory=dict)
    workflow_keys: dict[WorkflowKey, str] = field(default_factory=dict)
    tasks: dict[TaskKey, TaskRow] = field(default_factory=dict)
    timers: dict[TaskKey, TimerRow] = field(default_factory=dict)
    requests: dict[tuple[str, str], RequestRow] = field(default_factory=dict)
    workers: dict[str, WorkerRow] = field(default_factory=dict)
    definitions: dict[tuple[str, str], list[DefinitionRow]] = field(default_factory=dict)
    children: dict[TaskKey, str] = field(default_factory=dict)
    unread: dict[str, list[HistoryEvent]] = field(default_factory=dict)
    calls: dict[str, list[HistoryEvent]] = field(default_factory=dict)
    dead_letters: dict[TaskKey, tuple[DeadLetter, SignalReceived | None]] = field(default_factory=dict)
    orphans: list[tuple[str, str | None]] = field(default_factory=list)
    promises: dict[tuple[str, str], PromiseRow] = field(default_factory=dict)
    tokens: dict[str, TokenRow] = field(default_factory=dict)
    subscriptions: dict[int, SubscriptionRow] = field(default_factory=dict)
    matches: list[list[int]] = field(default_factory=list)
    published: dict[int, PublishedRow] = field(default_factory=dict)
    look_backs: dict[LookBackKey, dict[Any, list[PublishedRow]]] = field(default_factory=dict)
    waits: dict[TaskKey, int] = field(default_factory=dict)
    event_keys: dict[tuple[str, str], EventKeyRow] = field(default_factory=dict)
    oldest: dict[tuple[str, str], list[PublishedRow]] = field(default_factory=dict)
    triggers: dict[tuple[str, str], list[TriggerRow]] = field(default_factory=dict)
    dead_events: dict[int, DeadEvent] = field(default_factory=dict)
    orgs: dict[str, Org] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    pauses: dict[PauseKey, Pause] = field(default_factory=dict)
    expired_events: list[PublishedRow] = field(default_factory=list)
    expired_requests: list[tuple[str, str]] = field(default_factory=list)
    """A page of keys that no longer count, see `model.RequestRow`."""
    deliveries: list[tuple[DeliveryRow, list[int], bool]] = field(default_factory=list)
    under_way: dict[tuple[str, SubscriptionKind, str], set[int]] = field(default_factory=dict)
    last_id: int = 0
    due_timers: list[TimerRow] = field(default_factory=list)
    due_tasks: list[TaskKey] = field(default_factory=list)
    turn_claims: list[list[str]] = field(default_factory=list)
    turns_left: bool = False
    claim_again_at: int | None = None
    task_claims: list[list[TaskKey]] = field(default_factory=list)
    expired_workers: list[str] = field(default_factory=list)
    held_turns: list[str] = field(default_factory=list)
    held_tasks: list[TaskKey] = field(default_factory=list)


class Changes(msgspec.Struct):
    """What to write, all of it in one transaction. A decision names every record it has changed: a store may keep the
    records it has lent, and would otherwise keep what was never written.

    `new_executions`/`changed_executions` hold whole heads; the ready row is upserted or deleted as `Execution.ready`
    says whenever the execution's id is in `ready`. `purge` deletes every task and timer row of these executions.
    A changed execution that is in `state_changed`, too, has another `state`, `closed_at`, `stuck`, `crashes`,
    `metadata`, `on_parent_close` or `successor`; all others have only gone on, which is the common case and cheaper to
    write. `metadata` are changed executions whose tags have changed; those of new executions are written with them.
    A workflow key that was there before may be moved if the batch has loaded the execution it points at.
    `dead_letter` makes dead letters of an execution's SIGNAL_RECEIVED events after a number: (execution id, seq,
    reason). `new_orgs` are those of `orgs` that were not there. `keys` are whole records, new or changed.
    `output` is what tasks have said; `trimmed_output` up to which number nothing of a task is kept, also of `output`.
    """

    new_executions: list[Execution] = field(default_factory=list)
    changed_executions: dict[str, Execution] = field(default_factory=dict)
    state_changed: set[str] = field(default_factory=set)
    metadata: dict[str, Execution] = field(default_factory=dict)
    ready: dict[str, Execution] = field(default_factory=dict)
    events: list[tuple[str, HistoryEvent]] = field(default_factory=list)
    workflow_keys: dict[WorkflowKey, str] = field(default_factory=dict)
    new_tasks: list[TaskRow] = field(default_factory=list)
    changed_tasks: dict[TaskKey, TaskRow] = field(default_factory=dict)
    deleted_tasks: list[TaskKey] = field(default_factory=list)
    output: list[OutputRow] = field(default_factory=list)
    trimmed_output: dict[TaskKey, int] = field(default_factory=dict)
    new_timers: list[TimerRow] = field(default_factory=list)
    deleted_timers: list[tuple[str, int]] = field(default_factory=list)
    purge: list[str] = field(default_factory=list)
    workers: dict[str, WorkerRow] = field(default_factory=dict)
    deleted_workers: list[str] = field(default_factory=list)
    definitions: list[DefinitionRow] = field(default_factory=list)
    requests: list[RequestRow] = field(default_factory=list)
    promises: dict[tuple[str, str], PromiseRow] = field(default_factory=dict)
    tokens: list[TokenRow] = field(default_factory=list)
    new_subscriptions: dict[int, SubscriptionRow] = field(default_factory=dict)
    deleted_subscriptions: list[int] = field(default_factory=list)
    purge_waits: list[str] = field(default_factory=list)
    published: dict[int, PublishedRow] = field(default_factory=dict)
    deleted_published: list[int] = field(default_factory=list)
    event_keys: dict[tuple[str, str], EventKeyRow] = field(default_factory=dict)
    triggers: list[TriggerRow] = field(default_factory=list)
    untriggered: set[tuple[str, str]] = field(default_factory=set)
    dead_events: list[DeadEvent] = field(default_factory=list)
    replayed_dead_events: list[int] = field(default_factory=list)
    deliveries: dict[int, DeliveryRow] = field(default_factory=dict)
    last_id: int | None = None
    forget_messages_before: int | None = None
    forget_dead_before: int | None = None
    dead_letters: list[DeadLetter] = field(default_factory=list)
    settled_letters: list[TaskKey] = field(default_factory=list)
    dead_letter: list[tuple[str, int, str]] = field(default_factory=list)
    orgs: dict[str, Org] = field(default_factory=dict)
    new_orgs: set[str] = field(default_factory=set)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    audit: list[AuditRow] = field(default_factory=list)
    pauses: dict[PauseKey, Pause] = field(default_factory=dict)
    deleted_pauses: list[PauseKey] = field(default_factory=list)
    """Those of deleted workers go with them."""
    deletions: dict[str, int] = field(default_factory=dict)
    purged_orgs: dict[str, int] = field(default_factory=dict)
    """Remove about so many rows of these orgs, after everything else; never their names and records of acts."""
    finished_deletions: list[str] = field(default_factory=list)
    removed: dict[str, Execution] = field(default_factory=dict)
    remains: set[str] = field(default_factory=set)
    cleared: int = 0
    """`removed` executions go with everything they have, after everything else, and so do workflow ids that point at
    them. Those in `remains` leave their events behind: about so many of such events are `cleared`."""
    deleted_requests: list[tuple[str, str]] = field(default_factory=list)
    """Removed before `requests` are written: a key may be used again at once."""

    def kept_output(self) -> list[OutputRow]:
        """What is to be written of `output`."""
        trimmed = self.trimmed_output
        if not trimmed:
            return self.output
        return [row for row in self.output if row.seq > trimmed.get((row.execution_id, row.task_no), 0)]


class Batch(Protocol):
    """Operations that share one transaction. All methods are called from the store's writer."""

    @property
    def waiting_since(self) -> float:
        """When the first of them came, by the loop's clock. The parts of a split come in the same order."""

    def plan(self) -> LoadPlan: ...

    def decide(self, loaded: Loaded) -> Changes:
        """Pure and repeatable: a retried transaction decides again, from a fresh load."""
        ...

    def committed(self) -> None: ...

    def failed(self, error: BaseException) -> None:
        """Nothing of this batch was written."""

    def commit_in_doubt(self, error: BaseException) -> None:
        """Whether it was committed can't be found out yet: callers may be told. `committed` or `failed` follows, or it
        is decided again."""

    def split(self) -> Sequence[Batch]:
        """Smaller batches that are this one together; a batch of one member is just that one."""
        ...


class BatchSource(Protocol):
    def take(self) -> Batch | None:
        """What is waiting now, as one batch, or None. Called from the writer's thread or task."""
        ...

    def writer_idle(self, *, writing: bool) -> None:
        """The writer waits for the database, to load a batch or to write it: the loop has time for other things. From
        a writer that is a task of the event loop (`Store.writes_on_loop`)."""
        ...

    def data_loss_detected(self) -> None:
        """The database has lost what it had committed: what this process remembers of it may never have been. From the
        writer."""
        ...

    def refuse_late(self, before: float, error: Exception) -> None:
        """Refuse what was handed in before then, by the loop's clock, and not taken yet: it can't be for now. From a
        writer that is a task of the event loop."""
        ...


class Store(Protocol):
    """`writes_on_loop`: its writer is a task of the event loop, which is free whenever that waits."""

    clock: Clock
    writes_on_loop: ClassVar[bool]

    @property
    def has_peers(self) -> bool:
        """Whether other processes have been at work on this database lately, and hear at once of what is committed."""
        ...

    async def open(self, source: BatchSource) -> None:
        """Create or migrate the schema, then start the writer. Raises SchemaTooNew, InvalidDatabaseUrl,
        StorageError."""
        ...

    async def close(self) -> None:
        """Write what is waiting, then stop."""
        ...

    def wake(self) -> None:
        """The source has work. Cheap; callable from any thread."""
        ...

    def run_on(self, connection: Any, batch: Batch) -> Awaitable[None] | None:
        """Load, decide and write on a connection of the caller's, inside its transaction, which stays open.

        Done when this returns, in the calling thread; a connection that lives in a thread or loop of its own gives
        something to await. Raises what the batch's decision raises, InvalidRequest for a connection that can't be
        joined, StorageBusy; the caller's transaction is then as it was before. `failed` is not called; `committed` is,
        on the loop, by a store that notices the caller's commit by itself.
        """
        ...

    def renew(self, worker: str, lease_s: float) -> bool:
        """Keep the lease of a session that has one, from any thread and without the event loop, which may be blocked.
        False where the writer does not need that loop, or it could not be done."""
        ...

    # --- reads ---

    async def executions(self, org: str, ids: Sequence[str]) -> dict[str, Execution]: ...

    async def execution_by_workflow_id(self, org: str, workflow_id: str) -> Execution | None: ...

    async def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None, types: Sequence[str] = ()
    ) -> list[HistoryEvent]:
        """Events after a number, in order; only those of these types, if any are named."""
        ...

    async def last_events(self, org: str, ids: Sequence[str]) -> dict[str, HistoryEvent]:
        """The last event of each: for a closed execution, how it ended."""
        ...

    async def events_of(self, org: str, ids: Sequence[str], types: Sequence[str]) -> dict[str, list[HistoryEvent]]:
        """The events of these types in several histories, each in order. One statement, however many."""
        ...

    async def list_executions(self, query: ExecutionQuery) -> list[Execution]: ...

    async def count_executions(self, org: str) -> dict[WorkflowStatus, int]: ...

    async def tasks(self, org: str, execution_id: str) -> list[TaskRow]: ...

    async def tasks_of(self, org: str, ids: Sequence[str]) -> dict[str, list[TaskRow]]: ...

    async def task(self, org: str, execution_id: str, task_no: int) -> TaskRow | None:
        """One task, unless it is finished."""
        ...

    async def task_output(self, org: str, execution_id: str, task_no: int, after: int, limit: int) -> list[OutputRow]:
        """What is kept of what a task has said after a number, in order."""
        ...

    async def timers(self, org: str, execution_id: str) -> list[TimerRow]: ...

    async def dead_letters(self, org: str, execution_id: str | None = None, limit: int = 100) -> list[DeadLetter]:
        """The newest first, without those that are settled."""
        ...

    async def promises(self, org: str, execution_id: str) -> list[PromiseRow]: ...

    async def waits(self, org: str, execution_id: str) -> list[SubscriptionRow]:
        """What an execution waits for that may be published, thrown or sent."""
        ...

    async def waits_of_key(self, org: str, kind: SubscriptionKind, key: str, limit: int) -> list[SubscriptionRow]:
        """The longest waiting first."""
        ...

    async def published(self, org: str, key: str | None, before: int | None, limit: int) -> list[PublishedRow]:
        """Kept events, the newest first, with numbers below `before`."""
        ...

    async def dead_events(self, org: str, key: str | None, before: int | None, limit: int) -> list[DeadEvent]:
        """Events nobody has got, the newest first."""
        ...

    async def event_key(self, org: str, key: str) -> EventKeyRow:
        """How many events of a key are kept, and how many were too many."""
        ...

    async def delivery(self, org: str | None, number: int) -> DeliveryRow | None:
        """An event or broadcast that many waited for; None once it is forgotten, or if one page was enough."""
        ...

    async def key_by_hash(self, key_hash: str) -> tuple[ApiKey, Org] | None:
        """The key that has this hash, or had it before its last rotation, and its org."""
        ...

    async def key(self, org: str, key_id: str) -> ApiKey | None: ...

    async def keys(self, org: str, before: str | None, limit: int) -> list[ApiKey]:
        """The newest first, with ids below `before`."""
        ...

    async def any_keys(self) -> bool:
        """Whether there is a key, in any org and in any state."""
        ...

    async def org(self, slug: str) -> Org | None: ...

    async def orgs(self, after: str, limit: int) -> list[Org]:
        """In the order of their slugs, after one."""
        ...

    async def audit(self, org: str, before: int | None, limit: int) -> list[AuditRow]:
        """The newest first, with numbers below `before`."""
        ...

    async def definitions(self, org: str, limit: int) -> list[DefinitionRow]:
        """What workers have registered, by kind, the version registered last first, without the engine's own kinds
        (model.standalone)."""
        ...

    async def workers(self, org: str, limit: int) -> list[WorkerRow]:
        """The sessions of an org, the youngest first."""
        ...

    async def deletions(self) -> list[tuple[str, int]]:
        """Orgs that are being removed, and since when."""
        ...

    async def holds_any(self, org: str) -> bool:
        """Whether there are rows of an org, besides its name and its record of acts."""
        ...

    async def closed_page(self, before: int, after: str, limit: int) -> ClosedPage:
        """Of the next `limit` executions after a place that were closed before this instant, those without open
        children: the ones closed first come first. The first page is after ''."""
        ...

    async def has_remains(self) -> bool:
        """Whether there are events of executions that were removed."""
        ...

    async def pauses(self) -> list[Pause]:
        """Everything that is paused, in all orgs: by org, kind and name."""
        ...

    async def next_due_at(self, after: int) -> int | None:
        """The earliest `fire_at` of a timer, `due_at` or `not_before_at` of a task, `not_before_at` of a ready row,
        `sent_at` of a delivery that is not done.

        A `not_before_at` that was over at `after`, or whose row is leased, does not count: that waits for a worker.
        """
        ...

    async def pending_events_for(self, worker: str) -> list[tuple[str, int]]:
        """Executions leased by this session that got events it has not been told of: (execution id, last_seq)."""
        ...

    async def backlog(self, now: int, most: int) -> Backlog:
        """What waits in all orgs, with at most so many queues and orgs."""
        ...

    def vitals(self) -> Vitals:
        """How it is doing now; asks nobody."""
        ...

    async def inconsistencies(self, org: str, limit: int) -> list[Inconsistency]:
        """Open executions that wait for rows which do not exist, or have unread events and no ready row."""
        ...

    async def changed_elsewhere(self) -> bool:
        """Whether another process has committed since the last call; must be cheap (it is asked many times a
        second)."""
        ...

    async def until_changed(self, wait_s: float) -> None:
        """Wait until another process has committed, as far as the store is told of it, and no longer than this."""
        ...
