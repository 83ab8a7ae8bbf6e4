"""The worker's pulse, from a thread of its own: a busy event loop must not cost the leases.

It also watches the loop: a turn that has run for long is named in the log with the line it is at, and one that runs
beyond the limit makes the pulse stop, so that other workers can take over what this one no longer gets done.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future

from holdfast.contract.workers import Heartbeat, HeartbeatAnswer, RunningAttempt, Work
from holdfast.errors import NOT_NOW, EngineStopped
from holdfast.worker.runtime import WorkerRuntime, log
from holdfast.worker.tasks import TaskRunner

WATCH_S = 0.5
NEVER_S = 3600.0


class Heartbeater:
    """`lost` is called on the event loop when the session had expired; `stale` with attempts that no longer count."""

    def __init__(
        self,
        runtime: WorkerRuntime,
        tasks: TaskRunner,
        lost: Callable[[str], None],
        stale: Callable[[tuple[tuple[str, int, int], ...]], None],
    ) -> None:
        self._runtime = runtime
        self._tasks = tasks
        self._lost = lost
        self._stale = stale
        self._stopping = False
        self._wake = threading.Event()
        tasks.on_heartbeat_limit = self._wake.set
        tasks.on_output(self._wake.set)
        self._loop_thread = threading.get_ident()
        self._turn: tuple[Work, float] | None = None
        self._warned = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="holdfast-heartbeats", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def turn_started(self, work: Work) -> None:
        self._turn = (work, time.monotonic())
        self._warned = False

    def turn_ended(self) -> None:
        self._turn = None

    def _run(self) -> None:
        """Whatever happens: without its pulse a worker loses all that it holds, and gets no more."""
        while not self._stopping:
            try:
                self._run_until_stopped()
            except Exception:  # noqa: BLE001 - see above
                log.exception("the pulse of session %s goes on after an error", self._runtime.session)
                time.sleep(WATCH_S)

    def _run_until_stopped(self) -> None:
        lease_s = self._runtime.config.lease_s
        last = time.monotonic()
        every_s = lease_s / 3
        hung = False
        while not self._stopping:
            self._wake.wait(min(WATCH_S, every_s / 2, self._output_due_in_s(hung)))
            self._wake.clear()
            hung = self._watch()
            # Passed on three times within the tightest heartbeat time-out of what runs.
            tightest = self._tasks.shortest_heartbeat_s()
            every_s = lease_s / 3 if tightest is None else min(lease_s, tightest) / 3
            now = time.monotonic()
            if self._runtime.SENDS_HEARTBEATS and not hung and not self._stopping:
                if now - last >= every_s:
                    last = now
                    self._beat(lease_s, self._tasks.tokens())
                elif self._output_due_in_s(hung) <= 0:
                    self._beat(lease_s)

    def _output_due_in_s(self, hung: bool) -> float:
        """How soon what a task says is to be passed on."""
        if hung or not self._runtime.session or not self._runtime.SENDS_HEARTBEATS:
            return NEVER_S
        left_s = self._tasks.output_due_in_s()
        return NEVER_S if left_s is None else max(left_s, 0)

    def _beat(self, lease_s: float, running: tuple[RunningAttempt, ...] = ()) -> None:
        runtime = self._runtime
        if not runtime.session:
            return
        beats = self._tasks.take_beats()
        request = Heartbeat(
            org=runtime.org,
            session=runtime.session,
            lease_s=lease_s,
            tasks=beats,
            running=running,
        )
        try:
            asked = runtime.workers.heartbeat(request)
        except EngineStopped:
            self._tasks.send_again(beats)
            return
        wait_s = lease_s / 6
        while not self._is_answered(asked, wait_s):
            # A loop that is blocked may be the one that would have to write it.
            if self._stopping or self._watch() or not runtime.workers.renew(request):
                if not self._stopping:
                    self._is_answered(asked, lease_s - wait_s)
                break
            wait_s = lease_s / 3
        if not asked.done():
            self._tasks.send_again(beats)
            if not self._stopping:
                log.warning("heartbeat not taken: no answer for %.1f s or more", lease_s)
            return
        try:
            answer = asked.result()
        except NOT_NOW as error:
            self._tasks.send_again(beats)
            log.warning("heartbeat not taken: %s", error)
            return
        self._tasks.confirm(beats)
        if not answer.alive:
            runtime.loop.call_soon_threadsafe(self._lost, request.session)
        elif answer.stale:
            runtime.loop.call_soon_threadsafe(self._stale, answer.stale)

    def _is_answered(self, asked: Future[HeartbeatAnswer], wait_s: float) -> bool:
        """Waits for the answer, but not when told to stop: it may be the loop that answers, and the loop waits for the
        end of this thread."""
        asked.add_done_callback(lambda _: self._wake.set())
        give_up_at = time.monotonic() + wait_s
        while not asked.done() and not self._stopping and (left_s := give_up_at - time.monotonic()) > 0:
            self._wake.wait(left_s)
            self._wake.clear()
        self._wake.set()  # somebody else may have meant the next beat
        return asked.done()

    def _watch(self) -> bool:
        """Whether the turn that runs now has passed the limit."""
        turn = self._turn
        if turn is None:
            return False
        took = time.monotonic() - turn[1]
        if took > self._runtime.config.turn_warning_s and not self._warned:
            self._warned = True
            frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - the documented way to see a thread
            where = "".join(traceback.format_stack(frame)[-3:]) if frame is not None else ""
            log.warning("execution %s has blocked its worker for %.1f s, at:\n%s", turn[0].execution_id, took, where)
        return took > self._runtime.config.turn_limit_s
