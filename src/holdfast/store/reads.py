"""What a store is asked outside of transactions: one record for each question, `await store.read(reads.History(...))`.

Answers are snapshots of what is committed. Each store answers a question with a function of the same fields. Rows of
plain tables need neither: `Row` and `Select` ask for those of any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import structs

from holdfast.model.events import HistoryEvent
from holdfast.model.executions import DeadLetter, DefinitionRow, Execution, OutputRow, Status, TaskRow, TimerRow
from holdfast.model.keys import ApiKey, Org
from holdfast.model.messages import DeliveryRow, PromiseRow, PublishedRow, SubscriptionKind, SubscriptionRow
from holdfast.store.closed_pages import ClosedPage
from holdfast.store.looks import Backlog, Inconsistency
from holdfast.store.plain import TABLES, PlainTable

T = TypeVar("T")
Answer_co = TypeVar("Answer_co", covariant=True)


class Query(msgspec.Struct, Generic[Answer_co], frozen=True):
    """A question, with the type of its answer."""

    @property
    def arguments(self) -> dict[str, Any]:
        """What the function that answers it is given, besides a connection."""
        return structs.asdict(self)


# --- plain tables ---


class Row(Query[T | None], Generic[T], frozen=True):
    """A row of a plain table by its key; if an org is named, only one of that org."""

    record: type[T]
    key: Any
    org: str | None = None

    @property
    def table(self) -> PlainTable[T]:
        return TABLES[self.record]

    def scoped(self, row: T | None) -> T | None:
        return row if self.org is None or getattr(row, "org", None) == self.org else None

    @property
    def arguments(self) -> dict[str, Any]:
        return {"query": self}


class Select(Query[list[T]], Generic[T], frozen=True):
    """Rows of a plain table: those with these values, in an order, after a value of its first column.

    A value of None is any. `order` are names of columns, with a minus for the largest first; by default the key.
    """

    record: type[T]
    where: tuple[tuple[str, Any], ...] = ()
    order: tuple[str, ...] = ()
    after: Any = None
    limit: int | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        return {"query": self}

    @property
    def table(self) -> PlainTable[T]:
        return TABLES[self.record]

    @property
    def asked(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self.where if value is not None]

    @property
    def columns(self) -> tuple[tuple[str, bool], ...]:
        """What to order by, and whether the largest comes first."""
        names = self.order or self.table.spec.key
        return tuple((name.removeprefix("-"), name.startswith("-")) for name in names)

    def statement(self, mark: Callable[[int, str], str]) -> str:
        """Its SQL; `mark` is how the store writes a parameter, by number and type. Names are those of columns only."""
        types = {column.name: column.type for column in self.table.columns}
        first, falling = self.columns[0]
        tests = [f"{name} = {mark(at, types[name])}" for at, (name, _) in enumerate(self.asked, 1)]
        if self.after is not None:
            tests.append(f"{first} {'<' if falling else '>'} {mark(len(tests) + 1, types[first])}")
        text = f"SELECT {', '.join(types)} FROM {self.table.spec.name}"  # noqa: S608 - our own names
        text += f" WHERE {' AND '.join(tests)}" if tests else ""
        text += f" ORDER BY {', '.join(name + ' DESC' * down for name, down in self.columns)}"
        return text + (f" LIMIT {mark(len(tests) + 1, 'bigint')}" if self.limit is not None else "")

    @property
    def values(self) -> list[Any]:
        """The parameters of the statement."""
        given = [value.value if isinstance(value, Enum) else value for _, value in self.asked]
        return given + [value for value in (self.after, self.limit) if value is not None]


# --- executions and their histories ---


class Executions(Query[dict[str, Execution]], frozen=True):
    """Those that exist in the org, by id."""

    org: str
    ids: Sequence[str]


class ExecutionByWorkflowId(Query[Execution | None], frozen=True):
    org: str
    workflow_id: str


class ListExecutions(Query[list[Execution]], frozen=True, kw_only=True):
    """A page of executions, newest first, strictly older than `before` (an execution id). All of the `metadata` pairs
    must be there."""

    org: str
    statuses: tuple[Status, ...] = ()
    kinds: tuple[str, ...] = ()
    workflow_id: str | None = None
    queue: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    created_from: int | None = None
    created_before: int | None = None
    before: str | None = None
    limit: int = 100

    @property
    def arguments(self) -> dict[str, Any]:
        return {"query": self}


class CountExecutions(Query[dict[Status, int]], frozen=True):
    """How many have each status that occurs."""

    org: str


class History(Query[list[HistoryEvent]], frozen=True):
    """Events after a number, in order; only those of these types, if any are named."""

    org: str
    execution_id: str
    after: int = 0
    limit: int | None = None
    types: Sequence[str] = ()


class LastEvents(Query[dict[str, HistoryEvent]], frozen=True):
    """The last event of each: for a closed execution, how it ended."""

    org: str
    ids: Sequence[str]


class EventsOf(Query[dict[str, list[HistoryEvent]]], frozen=True):
    """The events of these types in several histories, each in order. One statement, however many."""

    org: str
    ids: Sequence[str]
    types: Sequence[str]


class ClosedExecutions(Query[ClosedPage], frozen=True):
    """Of the next `limit` executions after a place that were closed before this instant, those without open children:
    the ones closed first come first. The first page is after ''."""

    before: int
    after: str
    limit: int


class DeadLetters(Query[list[DeadLetter]], frozen=True):
    """The newest first, without those that are settled."""

    org: str
    execution_id: str | None = None
    limit: int = 100


# --- what executions have ---


class Tasks(Query[list[TaskRow]], frozen=True):
    org: str
    execution_id: str


class TasksOf(Query[dict[str, list[TaskRow]]], frozen=True):
    org: str
    ids: Sequence[str]


class Task(Query[TaskRow | None], frozen=True):
    """One task, unless it is finished."""

    org: str
    execution_id: str
    task_no: int


class TaskOutput(Query[list[OutputRow]], frozen=True):
    """What is kept of what a task has said after a number, in order."""

    org: str
    execution_id: str
    task_no: int
    after: int
    limit: int


class Timers(Query[list[TimerRow]], frozen=True):
    org: str
    execution_id: str


class Promises(Query[list[PromiseRow]], frozen=True):
    org: str
    execution_id: str


class Waits(Query[list[SubscriptionRow]], frozen=True):
    """What an execution waits for that may be published, thrown or sent."""

    org: str
    execution_id: str


# --- events ---


class WaitsOfKey(Query[list[SubscriptionRow]], frozen=True):
    """The longest waiting first."""

    org: str
    kind: SubscriptionKind
    key: str
    limit: int


class Published(Query[list[PublishedRow]], frozen=True):
    """Kept events, the newest first, with numbers below `before`."""

    org: str
    key: str | None
    before: int | None
    limit: int


class Delivery(Query[DeliveryRow | None], frozen=True):
    """An event or broadcast that many waited for; None once it is forgotten, or if one page was enough."""

    org: str | None
    number: int


# --- orgs, keys, workers ---


class KeyByHash(Query[tuple[ApiKey, Org] | None], frozen=True):
    """The key that has this hash, or had it before its last rotation, and its org."""

    key_hash: str


class Definitions(Query[list[DefinitionRow]], frozen=True):
    """What workers have registered, by kind, the version registered last first, without the engine's own kinds
    (model.standalone)."""

    org: str
    limit: int


class HoldsAny(Query[bool], frozen=True):
    """Whether there are rows of an org, besides its name and its record of acts."""

    org: str


class HasRemains(Query[bool], frozen=True):
    """Whether there are events of executions that were removed."""


# --- what is due, what waits, what is wrong ---


class NextDueAt(Query[int | None], frozen=True):
    """The earliest `fire_at` of a timer, `due_at` or `not_before_at` of a task, `not_before_at` of a ready row,
    `sent_at` of a delivery that is not done.

    A `not_before_at` that was over at `after`, or whose row is leased, does not count: that waits for a worker.
    """

    after: int


class NewsFor(Query[list[tuple[str, int]]], frozen=True):
    """Executions leased by this session that got events it has not been told of: (execution id, last_seq)."""

    worker: str


class Backlogs(Query[Backlog], frozen=True):
    """What waits in all orgs, with at most so many queues and orgs."""

    now: int
    most: int


class Inconsistencies(Query[list[Inconsistency]], frozen=True):
    """Open executions that wait for rows which do not exist, or have unread events and no ready row."""

    org: str
    limit: int
