"""Signals nobody has read, in the words of an application: in the queues of an execution, and as dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, overload

from holdfast.client.views import instant
from holdfast.contract import executions as ex
from holdfast.errors import InvalidRequest
from holdfast.model.payloads import decode
from holdfast.model.values import Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxEntry:
    """A signal that was received and not read. `seq` is its number in the history, `size` that of its value in bytes;
    `sender` the execution that sent it, if one did. `reason` says why it is a dead letter, if it is one."""

    seq: int
    signal_name: str
    value: Any
    received_at: datetime
    age: timedelta
    size: int
    sender: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The oldest unread signals of an execution; `counts` says how many of each name there are in all.

    Not `complete` if no worker with the code could be asked what its program has read: then they are those that no turn
    has seen, and the program may have left more.
    """

    entries: tuple[MailboxEntry, ...]
    counts: Mapping[str, int]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A signal that was accepted and never read, with the reason: its execution was closed before
    ("closed_before_read"), or its handler could not take the value. `age` counts from when it was received."""

    execution_id: str
    seq: int
    signal_name: str
    value: Any
    reason: str
    received_at: datetime
    buried_at: datetime
    age: timedelta
    size: int


class Mailboxes:
    """What a client does about unread signals. See `Client`."""

    __slots__ = ("_executions", "_org")

    def __init__(self, executions: ex.Executions, org: str) -> None:
        self._executions = executions
        self._org = org

    async def read(self, execution_id: str, limit: int) -> Mailbox:
        answer = await self._executions.mailbox(self._org, execution_id, limit)
        return Mailbox(tuple(_entry(signal) for signal in answer.signals), answer.counts, answer.complete)

    async def dead_letters(self, execution_id: str | None, limit: int) -> list[DeadLetter]:
        answer = await self._executions.dead_letters(self._org, execution_id, limit)
        return [
            DeadLetter(
                execution_id=letter.execution_id,
                seq=letter.seq,
                signal_name=letter.signal_name,
                value=decode(letter.signal_value, field="value"),
                reason=letter.reason,
                received_at=instant(letter.received_at),
                buried_at=instant(letter.at),
                age=_age(answer.now - letter.received_at),
                size=_size(letter.signal_value),
            )
            for letter in answer.letters
        ]

    async def redeliver(self, dead_letter: DeadLetter, to: str | None) -> ex.RedeliverResult:
        execution_id, seq = _key(dead_letter)
        return await self._executions.redeliver(
            ex.RedeliverSignal(org=self._org, workflow_execution_id=execution_id, seq=seq, to=to)
        )

    async def remove(self, dead_letter: DeadLetter) -> None:
        execution_id, seq = _key(dead_letter)
        await self._executions.remove_dead_letter(
            ex.RemoveDeadLetter(org=self._org, workflow_execution_id=execution_id, seq=seq)
        )

    async def dead_letter(self, execution_id: str, reason: str) -> int:
        return await self._executions.dead_letter_unread(
            ex.DeadLetterUnread(org=self._org, workflow_execution_id=execution_id, reason=reason)
        )


def _entry(signal: ex.UnreadSignal) -> MailboxEntry:
    return MailboxEntry(
        seq=signal.seq,
        signal_name=signal.signal_name,
        value=decode(signal.signal_value, field="value"),
        received_at=instant(signal.received_at),
        age=_age(signal.age),
        size=_size(signal.signal_value),
        sender=signal.sender,
        reason=signal.reason,
    )


def _age(age: int) -> timedelta:
    return timedelta(microseconds=max(age, 0))


def _size(value: Payload) -> int:
    return len(memoryview(value))


def _key(given: object) -> tuple[str, int]:
    if not isinstance(given, DeadLetter):
        raise InvalidRequest(
            f"give a dead letter as client.dead_letters() lists them, not {type(given).__name__}", field="dead_letter"
        )
    return given.execution_id, given.seq
