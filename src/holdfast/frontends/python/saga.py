"""Sagas: work whose undoing is registered as it succeeds, and run when the block fails or is cancelled.

Owns: the list of compensations of one `async with ctx.saga()` block, and the order in which they run.
Promises: what is undone is what the history records as done, nothing more and nothing less, and no cancel, time-out or
failure of another compensation keeps one from running. All of it is workflow code on the workflow's own loop, so the
compensations are replayed like everything else: after a crash they go on where they were.
Must not: run anything when the program is thrown away or is itself at fault; such an execution goes on later.

A task can be recorded as done in the very moment in which its wait is cancelled. Whichever is recorded first wins: the
saga takes the work back, goes on listening, and waits for a timer of zero seconds before it undoes anything. That timer
fires after the record of the taking back, so every outcome that came before it has been seen by then. A child is asked
to stop and may take its time, or end well all the same: its end is waited for.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from holdfast.errors import CompensationFailed, ControlFlow, InvalidRequest, ProgramError
from holdfast.frontends.python.definitions import task_definition
from holdfast.frontends.python.futures import DurableFuture
from holdfast.frontends.python.loop import DeterministicLoop, foreign_wait

if TYPE_CHECKING:
    from holdfast.frontends.python.context import WorkflowContext

T = TypeVar("T")

_HAS_EFFECTS = frozenset({"task", "step", "child"})  # kinds of futures whose outcome is something to undo


class Saga:
    """What `async with ctx.saga() as saga` gives. Made by `ctx.saga()` and `saga.nested()`, used once."""

    __slots__ = ("_compensations", "_ctx", "_loop", "_outer")

    def __init__(
        self,
        ctx: WorkflowContext,
        loop: DeterministicLoop,
        *,
        parallel: bool = False,
        outer: CompensationLog | None = None,
    ) -> None:
        self._ctx = ctx
        self._loop = loop
        self._compensations = CompensationLog(loop, parallel=parallel)
        self._outer = outer

    async def do(self, work: Awaitable[T], undo: Callable[..., object]) -> T:
        """Wait for the work and give its result; once it has succeeded, and only then, `undo` is registered.

        `undo` starts the compensation: `undo=lambda booking: ctx.task(cancel_booking, booking)`. It gets the result if
        it has a parameter without a default.
        """
        given: object = work
        try:
            self._check_open()
            if not isinstance(given, Awaitable):
                raise InvalidRequest(f"saga.do needs something to await, not {given!r:.100}", field="work")
            takes_result = _takes_result(undo)
        except InvalidRequest:
            _drop(given)
            _drop(undo)  # a coroutine, perhaps, where the function was meant
            raise
        future = asyncio.ensure_future(work, loop=self._loop)

        def succeeded(result: T) -> None:
            self._compensations.undos.append(Undo(undo, (result,) if takes_result else ()))

        ended: asyncio.Future[None] = self._loop.create_future()
        self._compensations.in_flight.append(ended)
        try:
            return await self._wait(future, succeeded)
        finally:
            self._compensations.in_flight.remove(ended)
            ended.set_result(None)

    def undo(self, fn: Callable[..., object], *args: Any) -> None:
        """Register a compensation by hand: `fn(*args)`, an `async def` or something that returns an awaitable.

        Before the work, if it has to be undone even when nobody knows whether it happened.
        """
        self._check_open()
        _check_undo(fn, "fn")
        try:
            inspect.signature(fn).bind(*args)
        except TypeError as error:
            raise InvalidRequest(f"{_name(fn)} can't be called with these arguments: {error}", field="args") from error
        except ValueError:
            pass  # written in C, and it does not say what it takes
        self._compensations.undos.append(Undo(fn, args))

    def nested(self, *, parallel: bool = False) -> Saga:
        """A saga within this one. It undoes itself if its own block fails; if that succeeds, its compensations become
        part of this one's."""
        self._check_open()
        return Saga(self._ctx, self._loop, parallel=parallel, outer=self._compensations)

    async def __aenter__(self) -> Self:
        if self._compensations.state != "new":
            raise InvalidRequest("a saga is entered once: make another with ctx.saga()", field="saga")
        self._compensations.state = "open"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._outer is not None:
            self._outer.take_over(self._compensations)
        elif error is None or _not_for_us(error):
            self._compensations.close()
        else:
            # The timer is started here, so that it is recorded with the line of the user's block.
            barrier = self._ctx.sleep(0) if self._compensations.stop_work() else None
            asked = await self._undo_undisturbed(barrier, error)
            if asked is not None and not isinstance(error, asyncio.CancelledError):
                raise asked

    def _check_open(self) -> None:
        if self._compensations.state != "open":
            raise InvalidRequest(
                f"the saga is {self._compensations.state}: use it inside its `async with ctx.saga()` block",
                field="saga",
            )

    # --- waiting for work ---

    async def _wait(self, future: asyncio.Future[T], succeeded: Callable[[T], None]) -> T:
        first: list[asyncio.Future[Any]] = [future, self._compensations.closing]
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._give_up(future, succeeded)
            raise
        if not future.done():
            await self._give_up(future, succeeded)
            raise asyncio.CancelledError("the saga is being undone")
        result = future.result()
        succeeded(result)
        return result

    async def _give_up(self, future: asyncio.Future[T], succeeded: Callable[[T], None]) -> None:
        """Nobody waits any more. What has succeeded all the same, or is recorded as such, is registered."""

        def check(done: asyncio.Future[T]) -> None:
            if not done.cancelled() and done.exception() is None:
                succeeded(done.result())

        if isinstance(future, DurableFuture) and future.KIND in _HAS_EFFECTS and not future.done():
            future.give_up()
            future.add_done_callback(check)
            self._compensations.given_up.append(future)
            return
        while not future.done():  # a coroutine may take its time to clean up
            future.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        check(future)

    # --- undoing ---

    async def _undo_undisturbed(
        self, barrier: Awaitable[None] | None, error: BaseException
    ) -> asyncio.CancelledError | None:
        """Undo everything in a task of its own, which no cancel reaches. The first cancel that tried is the answer."""
        undoing = self._loop.create_task(self._undo_all(barrier))
        asked: asyncio.CancelledError | None = None
        while not undoing.done():
            try:
                await asyncio.wait([undoing])
            except asyncio.CancelledError as cancel:
                asked = asked or cancel
        failures = undoing.result()
        self._compensations.close()
        if failures:
            reasons = "; ".join(f"{type(failure).__name__}: {failure}" for failure in failures)
            raise CompensationFailed(
                f"{len(failures)} compensation(s) failed after {type(error).__name__}, the others have run: {reasons}",
                failures=tuple(failures),
            ) from error
        return asked

    async def _undo_all(self, barrier: Awaitable[None] | None) -> list[BaseException]:
        in_flight = self._compensations.all_in_flight()
        if in_flight:
            await asyncio.wait(in_flight)
        if barrier is not None:
            await barrier
        children = [future for future in self._compensations.all_given_up() if future.KIND == "child"]
        if children:
            await asyncio.wait(children)
        return await self._compensations.run()


class CompensationLog:
    """What one saga has registered and what it still waits for; that of a nested one is taken over by the outer."""

    __slots__ = ("_inner", "_loop", "_parallel", "closing", "given_up", "in_flight", "state", "undos")

    def __init__(self, loop: DeterministicLoop, *, parallel: bool) -> None:
        self._loop = loop
        self._parallel = parallel
        self._inner: list[CompensationLog] = []
        self.state: Literal["new", "open", "undoing", "over"] = "new"
        self.undos: list[Undo | CompensationLog] = []
        self.in_flight: list[asyncio.Future[None]] = []  # one for each `do` that waits; settled when it waits no more
        self.given_up: list[DurableFuture[Any]] = []
        self.closing: asyncio.Future[None] = loop.create_future()

    def take_over(self, inner: CompensationLog) -> None:
        inner.state = "over"
        self._inner.append(inner)
        self.undos.append(inner)

    def stop_work(self) -> bool:
        """Let those `do` that still wait, in other asyncio tasks, give up. Whether an outcome may yet turn up."""
        self.state = "undoing"
        self.closing.set_result(None)
        in_doubt = [inner.stop_work() for inner in self._inner]
        return any(in_doubt) or bool(self.in_flight or self.given_up)

    def all_in_flight(self) -> list[asyncio.Future[None]]:
        return [*self.in_flight, *(ended for inner in self._inner for ended in inner.all_in_flight())]

    def all_given_up(self) -> list[DurableFuture[Any]]:
        return [*self.given_up, *(future for inner in self._inner for future in inner.all_given_up())]

    async def run(self) -> list[BaseException]:
        """Run what is registered, the last one first; what went wrong, in the order in which it was begun."""
        failures: list[BaseException] = []
        while self.undos:
            if not self._parallel:
                failures += await self.undos.pop().run()
                continue
            undos, self.undos = self.undos[::-1], []
            running = [self._loop.create_task(undo.run()) for undo in undos]
            await asyncio.wait(running)
            for each in running:
                failures += each.result()
        return failures

    def close(self) -> None:
        self.state = "over"
        for future in self.given_up:
            future.stop_listening()
        for inner in self._inner:
            inner.close()


class Undo:
    """One compensation, ready to be started."""

    __slots__ = ("_args", "_fn")

    def __init__(self, fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._fn = fn
        self._args = args

    async def run(self) -> list[BaseException]:
        try:
            started = self._fn(*self._args)
            if isinstance(started, Awaitable):
                await started
            elif started is not None:
                raise InvalidRequest(
                    f"the compensation {_name(self._fn)} gave {started!r:.100}, which can't be awaited", field="undo"
                )
        except BaseException as error:
            if _not_for_us(error):
                raise
            return [error]
        return []


def _not_for_us(error: BaseException) -> bool:
    """Whether the program is being thrown away, or can't be driven as it is written: it goes on after a fixed deploy,
    and must not find then that its work was undone."""
    if isinstance(error, BaseExceptionGroup):
        return any(_not_for_us(inner) for inner in error.exceptions)
    return isinstance(error, ControlFlow | GeneratorExit | ProgramError) or foreign_wait(error) is not None


def _check_undo(undo: object, field: str) -> None:
    if not callable(undo):
        _drop(undo)
        raise InvalidRequest(
            f"a compensation is a function that starts it, not {undo!r:.100}: write "
            f"{field}=lambda result: ctx.task(...)",
            field=field,
        )
    if task_definition(undo) is not None:
        raise InvalidRequest(
            f"{_name(undo)} is a task and would run inside the workflow: write "
            f"{field}=lambda result: ctx.task({_name(undo)}, result)",
            field=field,
        )


def _takes_result(undo: Callable[..., object]) -> bool:
    _check_undo(undo, "undo")
    try:
        signature = inspect.signature(undo)
    except ValueError:
        return True  # written in C, and it does not say what it takes
    for arguments in (("result",), ()):
        try:
            bound = signature.bind(*arguments)
        except TypeError:
            continue
        if not arguments or _is_needed(signature, bound):
            return bool(arguments)
    raise InvalidRequest(
        f"{_name(undo)} must take the result of the work or nothing: {_name(undo)}{signature}", field="undo"
    )


def _is_needed(signature: inspect.Signature, bound: inspect.BoundArguments) -> bool:
    """Whether the one argument goes to a parameter without a default: `lambda booking=booking: …` has its own."""
    parameter = signature.parameters[next(iter(bound.arguments))]
    return parameter.default is inspect.Parameter.empty


def _drop(work: object) -> None:
    """Work that was refused with its undo must not go on; a coroutine would warn that nobody awaited it."""
    if asyncio.iscoroutine(work):
        work.close()
    elif asyncio.isfuture(work):
        work.cancel()


def _name(fn: object) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))
