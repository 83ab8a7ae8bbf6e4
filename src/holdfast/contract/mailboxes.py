"""Signals that nobody has read: in the queues of an execution, and as dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, overload

import msgspec
from msgspec import Raw

from holdfast.contract.fields import Limit, Name, Number, null
from holdfast.contract.history import EXECUTIONS_TAG
from holdfast.contract.operation import (
    DELETE,
    EXECUTION,
    GET,
    ORG,
    POST,
    Record,
    Request,
    operation,
    public_names,
)
from holdfast.model.keys import Role
from holdfast.model.payloads import decode


class _Signal(Record, frozen=True, kw_only=True):
    """What both kinds of unread signals have in common."""

    signal_value: Raw = msgspec.field(default_factory=null)
    age_s: float

    @property
    def value(self) -> Any:
        return decode(self.signal_value, field="value")

    @property
    def size(self) -> int:
        """That of its value in bytes."""
        return len(memoryview(self.signal_value))

    @property
    def age(self) -> timedelta:
        return timedelta(seconds=max(self.age_s, 0.0))


class MailboxEntry(_Signal, frozen=True, kw_only=True, rename=public_names(seq="sequence")):
    """A signal that was received and not read. `seq` is its number in the history, `sender` the execution that sent it,
    if one did. `reason` says why it is a dead letter, if it is one."""

    seq: int
    signal_name: str
    received_at: datetime
    sender: str | None = None
    reason: str | None = None


class Mailbox(Record, frozen=True, kw_only=True, rename=public_names(entries="signals")):
    """The oldest unread signals of an execution; `counts` says how many of each name there are in all.

    Not `complete` if no worker with the code could be asked what its program has read: then they are those that no turn
    has seen, and the program may have left more.
    """

    workflow_execution_id: str
    entries: tuple[MailboxEntry, ...]
    counts: dict[str, int]
    complete: bool

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[MailboxEntry]:
        return iter(self.entries)

    @overload
    def __getitem__(self, index: int) -> MailboxEntry: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[MailboxEntry, ...]: ...

    def __getitem__(self, index: int | slice) -> MailboxEntry | tuple[MailboxEntry, ...]:
        return self.entries[index]


class DeadLetter(
    _Signal, frozen=True, kw_only=True, rename=public_names(execution_id="workflow_execution_id", seq="sequence")
):
    """A signal that was accepted and never read, with the reason: its execution was closed before
    ("closed_before_read"), or its handler could not take the value. `age` counts from when it was received."""

    execution_id: str
    seq: int
    signal_name: str
    reason: str
    received_at: datetime
    buried_at: datetime
    age_s: float = 0.0  # servers of earlier versions do not tell it


class DeadLetterList(Record, frozen=True, kw_only=True):
    """The newest first; `now` is the server's time, to tell their age by."""

    dead_letters: tuple[DeadLetter, ...]
    now: datetime


class Redelivered(Record, frozen=True):
    """Where the signal is now."""

    workflow_execution_id: str
    signal_event_sequence: int


class Buried(Record, frozen=True):
    """How many dead letters were made."""

    buried: int


@operation("workflow_mailbox", GET, f"{EXECUTION}/mailbox", Role.READER, tag=EXECUTIONS_TAG, waits=True)
class GetMailbox(Request[Mailbox], frozen=True, kw_only=True):
    """The oldest signals it has not read.

    Of an open execution, its queues; of a closed one, its dead letters.
    """

    workflow_execution_id: Name
    limit: Limit = 100


@operation(
    "bury_unread", POST, f"{EXECUTION}/bury-unread", Role.WRITER, tag=EXECUTIONS_TAG, waits=True, repeatable=False
)
class BuryUnread(Request[Buried], frozen=True, kw_only=True):
    """Make dead letters of what a closed execution has left unread."""

    workflow_execution_id: Name
    reason: Name = "left_unread"


@operation("workflow_dead_letters", GET, f"{EXECUTION}/dead-letters", Role.READER, tag=EXECUTIONS_TAG)
class ListDeadLettersOf(Request[DeadLetterList], frozen=True, kw_only=True):
    """Signals of an execution that were accepted but never read."""

    workflow_execution_id: Name
    limit: Limit = 100


@operation("list_dead_letters", GET, f"{ORG}/dead-letters", Role.READER, tag=EXECUTIONS_TAG)
class ListDeadLetters(Request[DeadLetterList], frozen=True, kw_only=True):
    """Signals that were accepted but never read, the newest first."""

    limit: Limit = 100


@operation(
    "redeliver_dead_letter",
    POST,
    f"{EXECUTION}/dead-letters/{{sequence}}/redeliver",
    Role.WRITER,
    tag=EXECUTIONS_TAG,
    repeatable=False,
    example={"to": "conversation:conv-124"},
)
class RedeliverSignal(Request[Redelivered], frozen=True, kw_only=True, rename=public_names(seq="sequence")):
    """Give a dead letter to the open execution with the same workflow id, or to another.

    `to` is an execution id or a workflow id.
    """

    workflow_execution_id: Name
    seq: Number
    to: Name | None = None


@operation(
    "remove_dead_letter",
    DELETE,
    f"{EXECUTION}/dead-letters/{{sequence}}",
    Role.WRITER,
    tag=EXECUTIONS_TAG,
    status=204,
    repeatable=False,
)
class RemoveDeadLetter(Request[None], frozen=True, kw_only=True, rename=public_names(seq="sequence")):
    """Have a dead letter listed no more."""

    workflow_execution_id: Name
    seq: Number
