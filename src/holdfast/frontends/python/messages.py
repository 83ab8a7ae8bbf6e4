"""What a workflow waits for from outside besides signals: promises, published events, messages, broadcasts.

The futures, and what a program has to remember of them: the names of its promises, and which events it has had.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast import errors
from holdfast.expressions import compile_filter
from holdfast.frontends.python.definitions import Duration, duration_s
from holdfast.frontends.python.futures import CallbackTimer, DurableFuture
from holdfast.frontends.python.shapes import shape_of
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.payloads import decode
from holdfast.model.tokens import promise_token, token_hash
from holdfast.model.validation import check_name
from holdfast.model.values import MICRO

if TYPE_CHECKING:
    from holdfast.frontends.python.program import PythonProgram

T = TypeVar("T")
LookBack = bool | Duration | datetime | None
"""How far a wait looks back: None, over the life of the execution; False, not at all; True, at all that is kept; or for
so long, or since an instant."""

MAX_SKIPPED = 256


class PromiseFuture(DurableFuture[T]):
    """One value from outside. `id` and `token` are what others settle it by."""

    __slots__ = ("_program",)
    KIND = "promise"

    def __init__(self, program: PythonProgram, name: str, hint: Any) -> None:
        super().__init__(program.loop, program.machine, name, hint)
        self._program = program

    @property
    def id(self) -> str:
        """After a reset or fork it is another one."""
        return f"{self._program.execution_id}:{self.name}"

    @property
    def token(self) -> str:
        """Whoever holds it can settle this promise and nothing else."""
        program = self._program
        return promise_token(program.token_key, program.org, program.own_id, self.name)

    def settle(self, body: e.EventBody) -> None:
        if isinstance(body, e.PromiseResolved):
            self._give(body.value)
        elif isinstance(body, e.PromiseRejected):
            failure = body.failure
            self._fail(
                errors.PromiseRejected(
                    f"promise {self.name!r} was rejected: {failure.type}: {failure.message}",
                    error_type=failure.type,
                    promise_id=self.id,
                    failure=failure,
                )
            )
        elif isinstance(body, e.PromiseTimedOut):
            self._fail(
                errors.PromiseTimeout(f"nobody settled promise {self.name!r} ({self.id}) in time", promise_id=self.id)
            )

    def _fail(self, error: BaseException) -> None:
        super()._fail(error)
        self._log_traceback = False  # a promise that nobody awaits is nobody's concern

    def _take_back(self) -> None:
        self._machine.cancel_promise(self.number, self.name, self.line)


class WaitFuture(DurableFuture[T]):
    """Settled by what was sent to those who wait for a name, or by its timer."""

    __slots__ = ("_inbox", "_replays", "_timer", "subject")

    def __init__(self, program: PythonProgram, subject: Subject, hint: Any = Any) -> None:
        super().__init__(program.loop, program.machine, subject.key, hint)
        self._inbox = program.inbox
        self._timer: CallbackTimer | None = None
        self._replays = False
        self.subject = subject

    @property
    def kind(self) -> str:
        """What people are told it waits for."""
        return self.subject.kind

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.number or self.name}"

    def begin(self, since_at: int | None, limit_us: int | None, *, consume: bool, after: int = 0) -> None:
        subject = self.subject
        self._replays = since_at is not None
        seen, skip = self._inbox.seen(subject)
        after = max(after, seen)
        started = self._machine.started
        born = 0 if started is None else started.born
        if started is not None and started.event_id is not None and started.event_id > after:
            skip = (*skip, started.event_id)  # what has started the workflow, it has had

        def command(number: int) -> c.StartWait:
            return c.StartWait(
                wait_no=number,
                kind=subject.kind,
                key=subject.key,
                correlation=subject.correlation,
                where=subject.where,
                since_at=since_at,
                after_event_id=after,
                skip=skip,
                born=born,
                consume=consume,
                line=self.line,
            )

        self.number = self._machine.start_wait(command, self)
        if limit_us is not None:
            fire_at = self._machine.now + limit_us
            self._timer = CallbackTimer(self._machine, f"timeout of {self.name}", fire_at, self._time_out, self.line)

    def accepts(self, event: e.EventReceived) -> bool:
        return self._replays and self._inbox.is_for(self.subject, event)

    def settle(self, body: e.EventBody) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if isinstance(body, e.EventReceived):
            self._inbox.note(self.subject, body.event_id)
            self._give(body.data)
        elif not self.done():
            nothing: Any = None
            self.set_result(nothing)

    def _time_out(self) -> None:
        self._machine.cancel_wait(self.number, self.line)
        self._fail(errors.EventTimeout(f"no {self.subject} came in time", kind=self.kind, key=self.name))

    def _take_back(self) -> None:
        self._machine.cancel_wait(self.number, self.line)
        if self._timer is not None:
            self._timer.cancel()

    def give_up(self) -> None:
        self._take_back()
        self._machine.listen("wait", self.number, self)

    def stop_listening(self) -> None:
        self._machine.unlisten("wait", self.number)


class Subject:
    """What exactly is waited for."""

    __slots__ = ("correlation", "key", "kind", "where")

    def __init__(self, kind: str, key: str, *, correlation: str | None = None, where: str | None = None) -> None:
        self.kind = kind
        self.key = key
        self.correlation = correlation
        self.where = where

    def accepts(self, event: e.EventReceived) -> bool:
        """Whether an event that another wait of this execution was given would do."""
        if (event.key, event.correlation) != (self.key, self.correlation):
            return False
        if self.where is None:
            return True
        return compile_filter(self.where).matches(decode(event.data, Any, field=self.key))

    def __str__(self) -> str:
        told = f"{self.kind} {self.key!r}"
        if self.correlation is not None:
            told += f" for {self.correlation!r}"
        return f"{told} where {self.where}" if self.where is not None else told


class Inbox:
    """What a program has had of each key: no wait gets the same event twice, and none is missed.

    A wait is given what is younger than the last event that the very same question was answered with. What other
    questions of the execution were answered with is left out as well, as far as the last of it is concerned.
    """

    __slots__ = ("_answered", "_before", "_had", "promises")

    def __init__(self, before: tuple[int, ...] = ()) -> None:
        """`before` are events that the runs before this one have had."""
        self.promises: set[str] = set()
        self._before = before
        self._answered: dict[tuple[str, str | None], int] = {}
        self._had: dict[str, list[int]] = {}

    def seen(self, subject: Subject) -> tuple[int, tuple[int, ...]]:
        """The event after which to look, and those to leave out of what follows it."""
        if subject.kind != "event":
            return 0, ()  # a message is gone once somebody has it
        after = self._answered.get((subject.key, subject.where), 0)
        had = sorted({*self._before, *self._had.get(subject.key, ())})
        return after, tuple(had[bisect_right(had, after) :][-MAX_SKIPPED:])

    def left(self, born: int) -> tuple[int, tuple[int, ...]]:
        """For the next run: the number after which events are its business, and those it has had of them."""
        had = sorted({*self._before, *(number for numbers in self._had.values() for number in numbers)})
        if len(had) > MAX_SKIPPED:
            born = max(born, had[-MAX_SKIPPED - 1])
        return born, tuple(number for number in had[-MAX_SKIPPED:] if number > born)

    def is_for(self, subject: Subject, event: e.EventReceived) -> bool:
        """Whether an event that came for another wait is one that this subject has not had."""
        return subject.accepts(event) and event.event_id not in self._had.get(event.key, ())

    def note(self, subject: Subject, event_id: int) -> None:
        if subject.kind == "event":
            key = (subject.key, subject.where)
            self._answered[key] = max(self._answered.get(key, 0), event_id)
            insort(self._had.setdefault(subject.key, []), event_id)


def make_promise(
    program: PythonProgram, name: str, hint: Any, *, timeout: Duration | None, event_key: str | None
) -> PromiseFuture[Any]:
    check_name(name, "name")
    if event_key is not None:
        check_name(event_key, "event_key")
    limit_us = limit_of(timeout)
    machine = program.machine
    machine.check_alive()
    if name in program.inbox.promises:
        raise errors.InvalidRequest(
            f"this execution has had a promise {name!r}: each needs a name of its own", field="name"
        )
    future: PromiseFuture[Any] = PromiseFuture(program, name, hint)
    shape = shape_of(hint)
    if limit_us is not None:
        future.until_at = machine.now + limit_us

    def command(number: int, timer_no: int | None) -> c.CreatePromise:
        return c.CreatePromise(
            promise_no=number,
            name=name,
            token_hash=token_hash(future.token),
            event_key=event_key,
            timer_no=timer_no,
            expires_at=future.until_at,
            shape=shape,
            line=future.line,
        )

    future.number = machine.create_promise(command, future, timed=limit_us is not None)
    program.inbox.promises.add(name)
    return future


def start_wait(
    program: PythonProgram,
    subject: Subject,
    hint: Any,
    *,
    timeout: Duration | None,
    look_back: LookBack = False,
    consume: bool = False,
) -> WaitFuture[Any]:
    """Wait, unless there is an event that came for a wait of this execution which had been given up by then."""
    limit_us = limit_of(timeout)
    since_at = since_of(program, look_back)
    program.machine.check_alive()
    future: WaitFuture[Any] = WaitFuture(program, subject, hint)
    left = None if since_at is None else program.machine.take_unclaimed(partial(program.inbox.is_for, subject))
    if left is not None:
        future.settle(left)
    else:
        # A number tells better than a time what came first.
        after = program.started.born if look_back is None else 0
        future.begin(since_at, limit_us, consume=consume, after=after)
    return future


def limit_of(timeout: Duration | None) -> int | None:
    return None if timeout is None else int(duration_s(timeout, "timeout") * MICRO)


def since_of(program: PythonProgram, look_back: LookBack) -> int | None:
    """The instant since which kept events count; None: only what comes."""
    if look_back is None:
        # Its number tells more exactly what came before it; and for a later run, when the first one began.
        return 0 if program.started.born or program.started.continued_from else program.started_at
    if isinstance(look_back, bool):
        return 0 if look_back else None
    if isinstance(look_back, datetime):
        if look_back.tzinfo is None:
            raise errors.InvalidRequest(
                f"look_back needs a datetime with a time zone, not {look_back!r}", field="look_back"
            )
        return max(int(look_back.timestamp() * MICRO), 0)
    if not isinstance(look_back, int | float | timedelta):
        raise errors.InvalidRequest(
            f"look_back must be True, False, a duration or a datetime, not {look_back!r:.50}", field="look_back"
        )
    return max(program.machine.now - int(duration_s(look_back, "look_back") * MICRO), 0)


def checked_where(where: str | None) -> str | None:
    """A filter that can be read; InvalidExpression says where it can't."""
    given: object = where
    if given is None:
        return None
    if not isinstance(given, str):
        raise errors.InvalidRequest(f"where must be an expression as text, not {type(given).__name__}", field="where")
    try:
        compile_filter(given)
    except errors.InvalidExpression as error:
        raise errors.InvalidExpression(
            str(error), offset=error.offset, line=error.line, column=error.column, field="where"
        ) from error
    return given
