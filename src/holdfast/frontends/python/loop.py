"""The event loop of one workflow execution: ordinary asyncio code, driven deterministically and without any I/O.

Owns: the order in which callbacks run, the identity of tasks and futures (name, hash), the way from asyncio's timers to
durable ones, and the refusal of everything that reaches outside.
Promises: the same program, given the same events in the same order, does the same things in the same order, whatever
the hash seed and the memory layout; an evicted program stops without a sound.
Must not: look at a clock, a socket or a thread, or know what a history is. Time comes through `TimerSeam`; results come
as futures that somebody else settles before calling `drain`.

Ten thousand of these are alive in one worker, so a loop has no selector, no heap and no members it does not need.

Two things stay as they are: `asyncio.all_tasks()` is empty inside a workflow (see `create_task`), and a future made as
`asyncio.Future()` instead of `loop.create_future()` has no deterministic place in a set.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import re
import sys
from asyncio.events import _get_running_loop, _set_running_loop
from asyncio.tasks import _unregister_task
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from math import inf, isnan
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Protocol, TypeVar, TypeVarTuple

from holdfast import errors
from holdfast.errors import ControlFlow, Evicted, NotDurableError

__all__ = ["BusyLoop", "DeterministicLoop", "TimerSeam", "WorkflowFuture", "WorkflowTask", "foreign_wait"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_CALLBACKS = 1_000_000  # in one drain; beyond that the program is taken to spin
MAX_UNHANDLED = 100
PATIENCE = 1_000  # how often an evicted program is told to stop before it is left where it stands
FEW_TASKS = 8

_NAMES = tuple(f"Task-{number}" for number in range(100))  # most workflows have few tasks: share their names
_LIBRARIES = tuple(str(Path(module.__file__ or "").parent) for module in (asyncio, errors))
# What calls `loop.create_task` for gather, as_completed and ensure_future; 3.11 has one more function in between.
_ENSURE_FUTURE = getattr(asyncio.tasks, "_ensure_future", asyncio.ensure_future).__code__
_AS_COMPLETED = asyncio.as_completed.__code__


class TimerSeam(Protocol):
    """How the loop asks for durable time."""

    def now(self) -> float:
        """The workflow's time in seconds: that of the event being delivered."""
        ...

    def start(self, when: float, fire: Callable[[], None]) -> Callable[[], None]:
        """Start a durable timer that calls `fire` when it is due; the answer cancels it."""
        ...


class BusyLoop(NotDurableError):
    """The workflow goes round and round without waiting for anything durable."""


class WorkflowFuture(asyncio.Future[T]):
    """A future whose place in a set depends on when it was made, not on where in memory it lies."""

    __slots__ = ("about", "ordinal")

    about: str  # what is waited for, for error messages; need not be set
    ordinal: int

    def __hash__(self) -> int:
        return self.ordinal


class WorkflowTask(asyncio.Task[T]):
    """A task whose place in a set depends on when it was made: TaskGroup, wait and as_completed walk sets."""

    __slots__ = ("ordinal",)

    ordinal: int

    def __hash__(self) -> int:
        return self.ordinal


class Ready(partial[object]):
    """A callback in the queue and, for whoever put it there, the handle that cancels it.

    A partial is made and called in C, in half the time of an asyncio.Handle.
    """

    __slots__ = ()

    def cancel(self) -> None:
        self.__setstate__((_nothing, (), {}, None))  # type: ignore[attr-defined]  # typeshed has no __setstate__

    def cancelled(self) -> bool:
        return self.func is _nothing


class WorkflowTimer(asyncio.TimerHandle):
    """What call_later and call_at give: `cancel` ends the durable timer or, once that has fired, the callback."""

    __slots__ = ("stop",)

    stop: Callable[[], None]

    def fire(self) -> None:
        if not self._cancelled:
            slots: Any = self  # asyncio.Handle's own, which typeshed does not know
            self.stop = slots._loop.call_soon(slots._callback, *self._args, context=slots._context).cancel  # noqa: SLF001


class ClosedLoop:
    """What a closed loop has instead of a queue and a clock: whoever uses them is told to stop.

    A program that catches everything in an endless loop (`while True: try: … except: pass`) would be told for ever,
    without coming back to us. So patience ends: from then on calls succeed and lead to futures that nobody settles,
    and the program comes to rest at its next await.
    """

    told = 0

    def __bool__(self) -> bool:
        return False  # nothing is ready

    def refuse(self) -> None:
        self.told += 1
        if self.told <= PATIENCE:
            raise Evicted

    def append(self, _: Ready) -> None:
        self.refuse()

    def now(self) -> float:
        self.refuse()
        return 0.0

    def start(self, when: float, fire: Callable[[], None]) -> Callable[[], None]:
        self.refuse()
        return _nothing


def _nothing() -> None:
    """Do nothing: what a cancelled callback does."""


def _close_coroutines(among: Iterable[object]) -> None:
    """Or Python warns that they were never awaited, on top of the error."""
    for each in among:
        if asyncio.iscoroutine(each):
            each.close()


def _refused(name: str, advice: str) -> Any:
    """A method that raises: it names what was called and says what to do instead."""

    def refuse(self: DeterministicLoop, *args: object, **_: object) -> NoReturn:
        _close_coroutines(args)
        self.refuse_if_closed()
        asked = _asked_for(sys._getframe(1))  # noqa: SLF001 - a private name, a documented function
        call, by = (asked, f" (by loop.{name})") if asked else (f"loop.{name}", "")
        raise NotDurableError(f"{call}(){by} {advice}", call=call)

    refuse.__name__ = name
    return refuse


_outside = partial(
    _refused,
    advice="reaches outside the workflow, where a replay can't repeat it: "
    "do it in a step, `await ctx.run(...)`, or in a task, `await ctx.task(...)`",
)
_engines = partial(_refused, advice="is not for workflow code: the engine drives this loop, a workflow only awaits")


class DeterministicLoop(asyncio.AbstractEventLoop):
    """One workflow's event loop. It never waits: `drain` runs what is ready and comes back."""

    __slots__ = ("_named", "_ordinal", "_prune_at", "_ready", "_tasks", "_timers", "unhandled")

    unhandled: list[dict[str, Any]] | None  # what asyncio would have logged; None until there is something

    def __init__(self, timers: TimerSeam) -> None:
        self._ready: list[Ready] | ClosedLoop = []
        self._timers = timers
        self._ordinal = 0
        self._named = 0
        self._tasks: list[WorkflowTask[Any]] = []  # in order of creation, some of them done
        self._prune_at = FEW_TASKS
        self.unhandled = None

    # --- driving ------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Run what is ready, in order, until nothing is. After an error from here the loop can only be closed."""
        if not self._ready:
            self.refuse_if_closed()
            return
        left = MAX_CALLBACKS
        outer, hooks = _get_running_loop(), sys.get_asyncgen_hooks()  # `inside`, written out: this path is the hot one
        _set_running_loop(self)
        sys.set_asyncgen_hooks(None, self._abandon)
        try:
            while batch := self._ready:
                assert not isinstance(batch, ClosedLoop)
                self._ready = []
                for run in batch:
                    try:
                        run()
                    except KeyboardInterrupt:
                        raise
                    except BaseException as error:  # noqa: BLE001 - one callback's failure is not the next one's
                        self._report_failed(run, error)
                left -= len(batch)
                if left < 0:
                    self._give_up()
        finally:
            _set_running_loop(outer)
            sys.set_asyncgen_hooks(*hooks)

    def close(self) -> None:
        """Evict: throw every task away.

        Python runs the `finally` blocks of a coroutine it drops, and nothing can prevent that. They run here, with this
        loop as the running one: whatever they ask of it raises Evicted, and what they raise is swallowed.
        """
        if isinstance(self._ready, ClosedLoop):
            return
        tasks: list[WorkflowTask[Any]] = []
        for task in self._tasks:
            if not task.done():
                tasks.append(task)
            elif task._log_traceback and not isinstance(task.exception(), ControlFlow):  # noqa: SLF001 - nobody looked
                self.call_exception_handler({"message": f"{task.get_name()} failed", "exception": task.exception()})
        self._tasks = []
        self._ready = self._timers = ClosedLoop()
        if tasks:  # in a context of their own, or a ContextVar set in a `finally` would be set in the worker
            copy_context().run(self.inside, partial(self._discard, tasks))

    def blocked_on(self) -> list[str]:
        """For every unfinished task, where it stands and what it awaits."""
        return [_position(task) for task in self._tasks if not task.done()]

    @property
    def activity(self) -> int:
        """A number that changes when anything is made or put into the queue here, until the next drain."""
        return self._ordinal + (0 if isinstance(self._ready, ClosedLoop) else len(self._ready))

    def refuse_if_closed(self) -> None:
        """Raise Evicted if the program was thrown away. For those who act for the program without using the loop."""
        if isinstance(self._ready, ClosedLoop):
            self._ready.refuse()

    def inside(self, work: Callable[[], T]) -> T:
        """Do the work with this loop as the running one, in place of the caller's.

        The generator hooks cost 0.5 µs. Without them an async generator made here would belong to the caller's loop,
        which would run the rest of it there, as a task, when it is dropped.
        """
        outer, hooks = _get_running_loop(), sys.get_asyncgen_hooks()
        _set_running_loop(self)
        sys.set_asyncgen_hooks(None, self._abandon)
        try:
            return work()
        finally:
            _set_running_loop(outer)
            sys.set_asyncgen_hooks(*hooks)

    def _report_failed(self, run: Ready, error: BaseException) -> None:
        """A task keeps its own SystemExit and raises it too; `sys.exit()` in a workflow must not end the worker."""
        callback = run.args[0] if run.args else None
        if not isinstance(getattr(callback, "__self__", None), asyncio.Task):
            self.call_exception_handler({"message": f"Exception in callback {callback!r}", "exception": error})

    def _give_up(self) -> NoReturn:
        places = "; ".join(self.blocked_on()[:3])
        raise BusyLoop(
            f"the workflow ran {MAX_CALLBACKS:,} callbacks without waiting for anything durable ({places}): "
            "wait with `await asyncio.sleep(seconds)`, a signal or an asyncio.Event instead of polling",
            call="asyncio.sleep(0)",
        )

    def _abandon(self, generator: AsyncGenerator[Any, Any]) -> None:
        """An async generator was dropped half-way: its `finally` runs now, up to its first await, and no further.

        asyncio would close it in a new task, at a moment that depends on the garbage collector. For the same reason
        what it awaits is ended here: the exception it handles holds its frame, so only the collector would free it.
        """

        def step() -> None:
            closing = generator.aclose()
            with suppress(StopIteration, Evicted):
                closing.send(None)
                _stopped(closing)

        try:
            self.inside(step)
        except BaseException as error:  # noqa: BLE001 - there is nobody above us: we are called by a destructor
            self.call_exception_handler({"message": f"Exception while closing {generator!r}", "exception": error})

    def _discard(self, tasks: list[WorkflowTask[Any]]) -> None:
        for task in tasks:
            coroutine = task.get_coro()
            if not _stopped(coroutine):
                message = f"Workflow code catches everything, eviction too, and stays in memory: {_position(task)}"
                self.unhandled = [*(self.unhandled or []), {"message": message, "task": task}]
                _keep_for_ever(coroutine)

    def _prune(self) -> None:
        self._tasks = [task for task in self._tasks if not task.done()]
        self._prune_at = max(FEW_TASKS, 2 * len(self._tasks))

    # --- what asyncio asks for ----------------------------------------------------------------------------------

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if context is None:
            context = copy_context()
        ready = Ready(context.run, callback, *args)
        self._ready.append(ready)
        return ready  # type: ignore[return-value]  # has what callers use of a Handle, at a fraction of its price

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> WorkflowTimer:
        return self.call_at(self._timers.now() + max(delay, 0), callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> WorkflowTimer:
        if isnan(when):
            raise ValueError("a timer needs a time, not NaN")
        timer = WorkflowTimer(when, callback, args, self, context)
        timer.stop = _nothing
        if when <= self._timers.now():
            timer.fire()
        elif when < inf:
            timer.stop = self._timers.start(when, timer.fire)
        return timer

    def _timer_handle_cancelled(self, handle: WorkflowTimer) -> None:
        """The `finally` of an evicted `asyncio.sleep` cancels too: that must not reach the durable timer."""
        if not self.is_closed():
            handle.stop()
        handle.stop = _nothing

    def time(self) -> float:
        return self._timers.now()

    def next_ordinal(self) -> int:
        """For whoever makes a WorkflowFuture of a class of its own."""
        if isinstance(self._ready, ClosedLoop):
            self._ready.refuse()
        self._ordinal += 1
        return self._ordinal

    def create_future(self) -> WorkflowFuture[Any]:
        future: WorkflowFuture[Any] = WorkflowFuture(loop=self)
        future.ordinal = self.next_ordinal()
        return future

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> WorkflowTask[T]:
        if name is None:  # `ensure_future` gives none
            caller = sys._getframe(1)  # noqa: SLF001 - a private name, a documented function
            if caller.f_code is _ENSURE_FUTURE:
                _refuse_as_completed(caller, coro)
        if isinstance(self._ready, ClosedLoop):
            coro.close()
            return self.create_future()  # type: ignore[return-value]  # or, mostly, Evicted; see Wall
        self._ordinal += 1
        self._named = number = self._named + 1
        if name is None:
            name = _NAMES[number] if number < len(_NAMES) else f"Task-{number}"
        task: WorkflowTask[T] = WorkflowTask.__new__(WorkflowTask)
        task.ordinal = self._ordinal  # before __init__, which puts the task into a set
        asyncio.Task.__init__(task, coro, loop=self, name=name, context=context)
        # That set is asyncio's own, of all tasks of all loops. There the first tasks of ten thousand workflows, all
        # with the same hash, would be one chain of collisions.
        _unregister_task(task)
        if len(self._tasks) >= self._prune_at:
            self._prune()
        self._tasks.append(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep it for the caller to log; a closed loop's tasks are dropped on purpose and have nothing to say."""
        if self.is_closed():
            return
        if self.unhandled is None:
            self.unhandled = []
        if len(self.unhandled) < MAX_UNHANDLED:
            self.unhandled.append(context)

    default_exception_handler = call_exception_handler

    def get_exception_handler(self) -> None:
        return None

    get_task_factory = get_exception_handler

    def is_running(self) -> bool:
        return _get_running_loop() is self

    def is_closed(self) -> bool:
        return isinstance(self._ready, ClosedLoop)

    get_debug = bool  # `bool()` is False, and C: asyncio asks for it with every future

    def set_debug(self, enabled: bool) -> None:
        """Debug mode times callbacks by the clock; a workflow has none."""

    # --- what a workflow can't have -----------------------------------------------------------------------------

    run_forever = _engines("run_forever")
    run_until_complete = _engines("run_until_complete")
    set_default_executor = _engines("set_default_executor")
    set_exception_handler = _engines("set_exception_handler")
    set_task_factory = _engines("set_task_factory")
    shutdown_asyncgens = _engines("shutdown_asyncgens")
    shutdown_default_executor = _engines("shutdown_default_executor")
    stop = _engines("stop")

    add_reader = _outside("add_reader")
    add_signal_handler = _outside("add_signal_handler")
    add_writer = _outside("add_writer")
    call_soon_threadsafe = _outside("call_soon_threadsafe")
    connect_accepted_socket = _outside("connect_accepted_socket")
    connect_read_pipe = _outside("connect_read_pipe")
    connect_write_pipe = _outside("connect_write_pipe")
    create_connection = _outside("create_connection")
    create_datagram_endpoint = _outside("create_datagram_endpoint")
    create_server = _outside("create_server")
    create_unix_connection = _outside("create_unix_connection")
    create_unix_server = _outside("create_unix_server")
    getaddrinfo = _outside("getaddrinfo")
    getnameinfo = _outside("getnameinfo")
    remove_reader = _outside("remove_reader")
    remove_signal_handler = _outside("remove_signal_handler")
    remove_writer = _outside("remove_writer")
    run_in_executor = _outside("run_in_executor")
    sendfile = _outside("sendfile")
    sock_accept = _outside("sock_accept")
    sock_connect = _outside("sock_connect")
    sock_recv = _outside("sock_recv")
    sock_recv_into = _outside("sock_recv_into")
    sock_recvfrom = _outside("sock_recvfrom")
    sock_recvfrom_into = _outside("sock_recvfrom_into")
    sock_sendall = _outside("sock_sendall")
    sock_sendfile = _outside("sock_sendfile")
    sock_sendto = _outside("sock_sendto")
    start_tls = _outside("start_tls")
    subprocess_exec = _outside("subprocess_exec")
    subprocess_shell = _outside("subprocess_shell")


# --- order in sets ----------------------------------------------------------------------------------------------------


def _hash_gathering(gathering: Any) -> int:
    """The hash of what `asyncio.gather` gives: the one future that no loop is asked to make."""
    loop = gathering.get_loop()
    if not isinstance(loop, DeterministicLoop):
        return object.__hash__(gathering)
    if not hasattr(gathering, "ordinal"):
        gathering.ordinal = loop.next_ordinal()
    return int(gathering.ordinal)


# A change to asyncio itself, and invisible to other loops. Without it `asyncio.wait` over two gathers walks them in the
# order of their addresses.
_GatheringFuture: Any = vars(asyncio.tasks)["_GatheringFuture"]
_GatheringFuture.__hash__ = _hash_gathering


def _refuse_as_completed(caller: FrameType, first: object) -> None:
    """as_completed starts bare coroutines in the order of a set of them, which is the order of their addresses."""
    frame: FrameType | None = caller
    while frame is not None and frame.f_code.co_filename == _ENSURE_FUTURE.co_filename:
        if frame.f_code is _AS_COMPLETED:
            _close_coroutines([first, *frame.f_locals["fs"]])
            raise NotDurableError(
                "asyncio.as_completed() starts coroutines in random order: "
                "pass it tasks made with asyncio.create_task(), or use asyncio.gather() or asyncio.wait()",
                call="asyncio.as_completed",
            )
        frame = frame.f_back


# --- eviction ---------------------------------------------------------------------------------------------------------


def _stopped(coroutine: Any) -> bool:
    """Throw Evicted into a coroutine until it ends. False: it catches everything and goes on."""
    for _ in range(PATIENCE + 2):
        try:
            awaited = coroutine.throw(Evicted())
        except BaseException:  # noqa: BLE001 - however it ended, it did
            return True
        if asyncio.isfuture(awaited):
            awaited._asyncio_future_blocking = False  # noqa: SLF001 - as a task does, or nobody could await it again
    return False


def _keep_for_ever(coroutine: object) -> None:
    """Never free a coroutine that would not stop, not even when Python ends: that would run its endless loop again."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(coroutine))


# --- messages ---------------------------------------------------------------------------------------------------------

_FOREIGN = re.compile(
    r"got Future (?P<future>.+) attached to a different loop"
    r"|^Task got bad yield: (?P<yielded>.+)"
    r"|^(?P<bound>.+) is bound to a different event loop$"
    r"|^The future belongs to a different loop",
    re.DOTALL,
)


def foreign_wait(error: BaseException) -> NotDurableError | None:
    """The error to show when workflow code awaited something that does not belong to its loop, or None."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(foreign_wait, error.exceptions)), None)
    found = _FOREIGN.search(str(error)) if isinstance(error, RuntimeError | ValueError) else None
    if found is None:
        return None
    awaited = next(filter(None, found.groups()), "a future of another event loop")
    foreign = NotDurableError(
        f"the workflow awaited {awaited}, which is not durable: a replay could not wait for it again. "
        "Do that work in a step, `await ctx.run(...)`, or in a task, `await ctx.task(...)`",
        call=awaited,
    )
    foreign.__cause__ = error
    return foreign


def _asked_for(frame: FrameType | None) -> str:
    """The function of asyncio that the workflow called, if it was not the loop's method itself."""
    asked = ""
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARIES[0]):
        asked = f"asyncio.{frame.f_code.co_qualname}"
        frame = frame.f_back
    return asked


def _position(task: WorkflowTask[Any]) -> str:
    """`file.py:line in function: awaiting thing`, for the innermost frame that is the user's."""
    place, called = None, None
    for frame, coroutine in _suspended(task.get_coro()):
        if place is None or not frame.f_code.co_filename.startswith(_LIBRARIES):
            place, called = frame, None
        elif called is None:
            called = coroutine
    thing = _awaited(getattr(task, "_fut_waiter", None), called)
    if place is None:  # a coroutine that was not written in Python
        return f"{task.get_name()}: {thing}"
    return f"{Path(place.f_code.co_filename).name}:{place.f_lineno} in {place.f_code.co_qualname}: {thing}"


def _suspended(awaitable: object) -> Iterator[tuple[FrameType, object]]:
    """The frames of a suspended coroutine, outermost first, each with its coroutine, generator or async generator."""
    while awaitable is not None:
        for prefix, inner in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
            frame = getattr(awaitable, f"{prefix}_frame", None)
            if frame is not None:
                yield frame, awaitable
                awaitable = getattr(awaitable, inner)
                break
        else:
            # `anext(generator)` and `coroutine.__await__()` stand in between and do not say for whom.
            hidden = gc.get_referents(awaitable) if type(awaitable).__module__ == "builtins" else []
            awaitable = next((each for each in hidden if hasattr(each, "ag_frame") or hasattr(each, "cr_frame")), None)


def _awaited(waiter: Awaitable[Any] | None, called: object) -> str:
    if waiter is None:
        return "ready to run"
    if about := getattr(waiter, "about", ""):
        return f"awaiting {about}"
    if called is not None:
        return f"awaiting {getattr(called, '__qualname__', type(called).__name__)}()"
    if isinstance(waiter, asyncio.Task):
        return f"awaiting task {waiter.get_name()}"
    return "awaiting gather()" if isinstance(waiter, _GatheringFuture) else "awaiting a future"
