"""Running tasks: one attempt each, handed out by the engine, reported back when it is over."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from holdfast.contract.workers import (
    CompleteTask,
    DeferTask,
    FailTask,
    Heartbeat,
    IssueTaskToken,
    ReleaseWork,
    TaskBeat,
    TaskStop,
    TaskWork,
)
from holdfast.errors import NOT_NOW, HoldfastError, InvalidRequest, StaleAttempt, UnknownTaskKind
from holdfast.frontends.python.definitions import TaskDefinition
from holdfast.frontends.python.failures import failure_of
from holdfast.frontends.python.task_context import TaskContext, TaskInfo
from holdfast.model.payloads import decode_args, encode
from holdfast.model.tokens import task_token, token_hash
from holdfast.model.values import MICRO, Failure, Payload, Token
from holdfast.telemetry.logs import RUNNING
from holdfast.telemetry.traces import Attributes
from holdfast.worker.output import Outputs
from holdfast.worker.runtime import WorkerRuntime, log
from holdfast.worker.steps import call_plain

RETRY_S = 0.2
PROGRESS_S = 1.0
"""How soon a new progress is passed on, for people who watch it."""
FINAL_FLUSH_S = 2.0

Report = CompleteTask | DeferTask | FailTask


class RunningTask:
    """An attempt that runs here, and what its context asks of the worker. `context` is there until it is over: they
    refer to each other."""

    __slots__ = ("_org", "_runner", "_session", "begun", "context", "job", "stopped", "work")

    def __init__(self, runner: TaskRunner, work: TaskWork, runtime: WorkerRuntime) -> None:
        self._runner = runner
        self._org = runtime.org
        self._session = runtime.session
        self.work = work
        self.begun = self.stopped = False
        self.context: TaskContext
        self.job: asyncio.Task[None]

    def log_fields(self) -> dict[str, Any]:
        """What a record that the body logs is about."""
        work = self.work
        return {
            "org": self._org,
            "workflow_execution_id": work.execution_id,
            "task": work.kind,
            "task_no": work.task_no,
            "attempt": work.token.epoch,
            "session": self._session,
        }

    def info(self) -> TaskInfo:
        work = self.work
        return TaskInfo(
            org=self._org,
            workflow_execution_id=work.execution_id,
            task_no=work.task_no,
            kind=work.kind,
            attempt=work.token.epoch,
            scheduled_at=_instant(work.scheduled_at),
            started_at=_instant(work.started_at),
        )

    def beat(self, details: Payload | None, progress: float | None) -> None:
        self._runner.note_beat(self.work, details, progress)

    def issue_token(self) -> str:
        return self._runner.issue_token(self.work)

    def emit_chunk(self, chunk: Payload) -> None:
        self._runner.note_output(self, chunk)

    def cancel(self, reason: str) -> None:
        """The attempt no longer counts. A job that is cancelled before it has begun would not run at all, and could not
        give its slot back: that one is told, and ends by itself."""
        self.stopped = True
        self.context.stop(reason)
        if self.begun:
            self.job.cancel()


class TaskRunner:
    """All task attempts of one worker."""

    def __init__(self, runtime: WorkerRuntime) -> None:
        self._runtime = runtime
        self.on_heartbeat_limit: Callable[[], None] = lambda: None
        self._running: dict[tuple[str, int], RunningTask] = {}
        self._beats: dict[tuple[str, int], TaskBeat] = {}
        self._beats_lock = threading.Lock()
        self._progress_at: float | None = None
        self._outputs = Outputs(runtime.workers.output_limits)
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def running(self) -> int:
        return len(self._running)

    def bodies(self) -> list[RunningTask]:
        """All attempts that run here."""
        return list(self._running.values())

    def start(self, work: TaskWork) -> None:
        running = RunningTask(self, work, self._runtime)
        running.context = TaskContext(
            running.info,
            work.details,
            running.beat,
            running.issue_token,
            emit_chunk=running.emit_chunk,
            chunk_bytes=self._outputs.chunk_bytes,
        )
        self._running[work.execution_id, work.task_no] = running
        self._idle.clear()
        if work.timeouts.heartbeat_s is not None:
            self.on_heartbeat_limit()
        runtime = self._runtime
        running.job = runtime.loop.create_task(
            self._run(running), name=f"task {work.kind}", context=runtime.context.copy()
        )

    def stop(self, stop: TaskStop) -> None:
        """The attempt no longer counts: cancel an async body, flag a body in a thread."""
        running = self._running.get((stop.execution_id, stop.task_no))
        if running is not None and running.work.token.epoch == stop.attempt:
            running.cancel(stop.reason)

    def stop_all_of(self, execution_id: str) -> None:
        for key, running in list(self._running.items()):
            if key[0] == execution_id:
                running.cancel("closed")

    def tokens(self) -> tuple[tuple[str, int, Token], ...]:
        """All attempts that run here. From any thread."""
        return tuple((*key, running.work.token) for key, running in tuple(self._running.items()))

    def stop_stale(self, attempts: tuple[tuple[str, int, int], ...]) -> None:
        for execution_id, task_no, attempt in attempts:
            self.stop(TaskStop(execution_id, task_no, attempt, "stale"))

    async def finish(self, grace_s: float) -> None:
        """Let what runs come to its end; after the grace, hand the rest back."""
        if self._running:
            try:
                await asyncio.wait_for(self._idle.wait(), grace_s)
            except TimeoutError:
                await self._hand_back()

    async def _hand_back(self) -> None:
        left = tuple(self._running.values())
        for running in left:
            running.cancel("shutdown")
        await self._flush_output()
        tokens = tuple((running.work.execution_id, running.work.task_no, running.work.token) for running in left)
        await self._runtime.workers.release(
            ReleaseWork(org=self._runtime.org, session=self._runtime.session, tasks=tokens)
        )
        await asyncio.gather(*(running.job for running in left), return_exceptions=True)

    async def _flush_output(self) -> None:
        """What was said by attempts that will not report. They go, whether or not it is taken."""
        runtime = self._runtime
        beats = self.take_beats()
        if any(beat.output for beat in beats):
            request = Heartbeat(org=runtime.org, session=runtime.session, lease_s=runtime.config.lease_s, tasks=beats)
            try:
                await asyncio.wait_for(asyncio.wrap_future(runtime.workers.heartbeat(request)), FINAL_FLUSH_S)
            except (TimeoutError, HoldfastError) as error:
                log.info("the last output of interrupted tasks was not recorded: %r", error)

    def drop_all(self) -> None:
        """The session is lost: nothing that runs here counts any more."""
        for running in self._running.values():
            running.cancel("session_lost")

    # --- heartbeats ---

    def note_beat(self, work: TaskWork, details: Payload | None, progress: float | None) -> None:
        """From any thread. Only the newest counts; the next heartbeat of the session carries it."""
        key = (work.execution_id, work.task_no)
        with self._beats_lock:
            before = self._beats.get(key)
            if before is not None:
                details = before.details if details is None else details
                progress = before.progress if progress is None else progress
            self._beats[key] = TaskBeat(
                execution_id=work.execution_id,
                task_no=work.task_no,
                token=work.token,
                details=details,
                progress=progress,
            )
            fresh = progress is not None and self._progress_at is None
            if fresh:
                self._progress_at = time.monotonic() + PROGRESS_S
        if fresh:
            self._outputs.wake()

    def note_output(self, running: RunningTask, chunk: Payload) -> None:
        """From any thread. What an attempt says that no longer counts is not passed on."""
        work = running.work
        if self._running.get((work.execution_id, work.task_no)) is running and not running.stopped:
            self._outputs.add(work, chunk)

    def take_beats(self) -> tuple[TaskBeat, ...]:
        """What is to be passed on, with all output that is not confirmed."""
        with self._beats_lock:
            beats, self._beats = self._beats, {}
            self._progress_at = None
        sent = self._outputs.take()
        taken = []
        for beat in beats.values():
            output = sent.pop((beat.execution_id, beat.task_no, beat.token), ())
            taken.append(replace(beat, output=output) if output else beat)
        for (execution_id, task_no, token), output in sent.items():
            taken.append(TaskBeat(execution_id=execution_id, task_no=task_no, token=token, output=output))
        return tuple(taken)

    def confirm(self, beats: tuple[TaskBeat, ...]) -> None:
        """The engine has answered these. From any thread, as what follows."""
        self._outputs.confirm(beats)

    def send_again(self, beats: tuple[TaskBeat, ...]) -> None:
        self._outputs.send_again(beats)

    def on_output(self, wake: Callable[[], None]) -> None:
        """Whom to tell that somebody has something to say."""
        self._outputs.wake = wake

    def output_due_in_s(self) -> float | None:
        """How soon something is to be passed on that somebody may be watching; None while there is nothing."""
        output_s, progress_at = self._outputs.due_in_s(), self._progress_at
        progress_s = None if progress_at is None else progress_at - time.monotonic()
        return min((left_s for left_s in (output_s, progress_s) if left_s is not None), default=None)

    def shortest_heartbeat_s(self) -> float | None:
        """The tightest heartbeat time-out among what runs: the session has to pass beats on faster than that."""
        limits = [running.work.timeouts.heartbeat_s for running in tuple(self._running.values())]
        return min((limit for limit in limits if limit is not None), default=None)

    # --- completion from outside ---

    def issue_token(self, work: TaskWork) -> str:
        """From any thread. The engine is told at once: whoever gets the token may be faster than the body. A body in a
        thread waits until it is recorded; on the event loop that can't be waited for, but what this process asks the
        engine for afterwards comes after it."""
        runtime = self._runtime
        key = runtime.token_key(work.execution_id)
        token = task_token(key, runtime.org, work.execution_id, work.task_no, work.token.epoch)
        issued = runtime.workers.issue_task_token(
            IssueTaskToken(
                org=runtime.org,
                execution_id=work.execution_id,
                task_no=work.task_no,
                token=work.token,
                token_hash=token_hash(token),
            )
        )
        if not _runs_on(runtime.loop):
            issued.result()
        return token

    def _deferral(self, work: TaskWork, token: str, returned: object) -> DeferTask:
        if returned is not None:
            log.warning(
                "task %s has called complete_later(): what it returned, %s, is not its result",
                work.kind,
                type(returned).__name__,
            )
        return DeferTask(
            org=self._runtime.org,
            session=self._runtime.session,
            execution_id=work.execution_id,
            task_no=work.task_no,
            token=work.token,
            token_hash=token_hash(token),
            details=self._unsent_details(work),
            output=self._outputs.finish(work),
        )

    # --- one attempt ---

    async def _run(self, running: RunningTask) -> None:
        work = running.work
        key = (work.execution_id, work.task_no)
        running.begun = True
        try:
            if running.stopped:
                raise asyncio.CancelledError
            RUNNING.set(running)
            report = await self._attempt(running)
            RUNNING.set(None)
            await self._report(report)
        except asyncio.CancelledError:
            # Stopped from outside. Unless we are shutting down (then it was handed back), the slot has to be given
            # back.
            if running.context.stop_reason not in {"shutdown", "session_lost"}:
                await self._report(self._failure(work, Failure(type="CancelledError", message="stopped")))
        finally:
            if self._running.get(key) is running:
                del self._running[key]
                if not self._running:
                    self._idle.set()
            self._outputs.finish(work)
            del running.context  # without this only the garbage collector could free them

    async def _attempt(self, running: RunningTask) -> Report:
        work = running.work
        definition = self._runtime.registry.task(work.kind)
        if definition is None:
            unknown = UnknownTaskKind(f"this worker does not know task kind {work.kind!r}: pass it in tasks=[...]")
            return self._failure(work, failure_of(unknown))
        try:
            returned = await self._call(definition, running)
            if running.context.token is not None:
                return self._deferral(work, running.context.token, returned)
            result = encode(returned, field=f"result of task {work.kind}")
        except HoldfastError as error:
            # The arguments do not fit or the result can't be kept: another attempt would end the same way.
            return self._failure(work, _final(failure_of(error)))
        except BaseException as error:
            # Also CancelledError or SystemExit of its own making; but not when it was us, or the end of the loop.
            if running.stopped or self._runtime.loop.is_closed():
                raise
            return self._failure(work, failure_of(error))
        return CompleteTask(
            org=self._runtime.org,
            session=self._runtime.session,
            execution_id=work.execution_id,
            task_no=work.task_no,
            token=work.token,
            result=result,
            output=self._outputs.finish(work),
        )

    async def _call(self, definition: TaskDefinition, running: RunningTask) -> Any:
        arguments: list[Any] = decode_args(running.work.input, definition.parameter_types)
        if len(arguments) < definition.required:
            raise InvalidRequest(
                f"task {definition.kind!r} needs {definition.required} argument(s), got {len(arguments)}", field="args"
            )
        if definition.wants_context:
            arguments.insert(0, running.context)
        fn, work = definition.fn, running.work
        if self._runtime.tracing is not None:
            named: Attributes = {"holdfast.org": self._runtime.org, "holdfast.task": work.kind}
            fn = self._runtime.tracing.task(fn, work.execution_id, work.task_no, work.token.epoch, named)
        if definition.is_async:
            return await fn(*arguments)
        return await call_plain(self._runtime, fn, tuple(arguments))

    def _failure(self, work: TaskWork, failure: Failure) -> FailTask:
        return FailTask(
            org=self._runtime.org,
            session=self._runtime.session,
            execution_id=work.execution_id,
            task_no=work.task_no,
            token=work.token,
            failure=failure,
            details=self._unsent_details(work),
            output=self._outputs.finish(work),
        )

    def _unsent_details(self, work: TaskWork) -> Payload | None:
        with self._beats_lock:
            beat = self._beats.pop((work.execution_id, work.task_no), None)
        return beat.details if beat is not None and beat.token == work.token else None

    async def _report(self, report: Report) -> None:
        """Report until it is taken; work that is done must not be lost to a busy database."""
        workers = self._runtime.workers
        while True:
            try:
                match report:
                    case CompleteTask():
                        await workers.complete_task(report)
                    case DeferTask():
                        await workers.defer_task(report)
                    case FailTask():
                        await workers.fail_task(report)
            except StaleAttempt as stale:
                log.info("%s", stale)
            except NOT_NOW as error:
                if self._runtime.draining:
                    # Handed back already, or lost with its lease: the attempt is made again.
                    log.info(
                        "nobody took the report on task %d of execution %s: %s",
                        report.task_no,
                        report.execution_id,
                        error,
                    )
                    return
                await asyncio.sleep(RETRY_S)
                continue
            return


def _runs_on(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _final(failure: Failure) -> Failure:
    return replace(failure, non_retryable=True)


def _instant(at: int) -> datetime:
    return datetime.fromtimestamp(at / MICRO, UTC)
