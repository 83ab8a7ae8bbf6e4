"""Running one execution: its cached program, its steps, its commits. One commit in flight at a time.

    work ─► absorb events ─► turn ─► commit ─► answer ─► idle (cached) | next turn | gone
                 ▲                                 │
                 └──────── a step finishes ◄───────┘

When a step finishes, the program is run ahead on its result and both are committed together, on the assumption that
nothing else reached the execution meanwhile. If something did, only the step is recorded, the program is thrown away
and rebuilt from its history. What runs ahead starts nothing until the commit is answered, and neither does a turn that
has made a promise: whoever is told of it may settle it at once.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

from msgspec import structs

from holdfast.contract.workers import (
    CompleteTurn,
    ParkTurn,
    PendingEvents,
    ReleaseWork,
    TurnAnswer,
    TurnVerdict,
    TurnWork,
)
from holdfast.errors import (
    NOT_NOW,
    DeterminismError,
    EngineStopped,
    ExecutionNotFound,
    HoldfastError,
    InvalidRequest,
    ProgramError,
    StaleClaim,
)
from holdfast.model.commands import CreatePromise, Turn
from holdfast.model.events import HistoryEvent, StepFinished
from holdfast.model.executions import StuckReason
from holdfast.model.values import Token
from holdfast.replay.machine import Machine
from holdfast.replay.program import StepRequest
from holdfast.worker.queries import QueryCallback
from holdfast.worker.runtime import ProgramMaker, WorkerRuntime, log
from holdfast.worker.steps import RunningStep

RETRY_S = 0.2
NO_TOKEN = Token(0, 0)
RECORDED = TurnVerdict.RECORDED
QUERY_ROUNDS = 3


class PendingQuery:
    """Somebody who wants to look at the program when it has seen event `last_seq`; how many commits he waits for."""

    __slots__ = ("callback", "last_seq", "rounds")

    def __init__(self, last_seq: int, callback: QueryCallback) -> None:
        self.last_seq = last_seq
        self.callback = callback
        self.rounds = QUERY_ROUNDS


class ExecutionRunner:
    """See the module's text. `known` is the last event number this runner knows of, its own rows included."""

    __slots__ = (
        "_busy",
        "_late",
        "_late_seq",
        "_machine",
        "_make",
        "_next",
        "_outcomes",
        "_pending_queries",
        "_refused",
        "_request",
        "_running",
        "_runtime",
        "_scheduled_at",
        "_token",
        "_unrecorded",
        "build",
        "held",
        "id",
        "kind",
        "known",
        "workflow_id",
    )

    def __init__(self, runtime: WorkerRuntime, execution_id: str, make: ProgramMaker, build: str) -> None:
        self._runtime = runtime
        self._make = make
        self.id = execution_id
        self.workflow_id = ""
        self.kind = ""
        self.build = build
        self.held = False
        self.known = 0
        self._token = NO_TOKEN
        self._machine: Machine | None = None
        self._busy = False
        self._request: CompleteTurn | None = None
        self._next: TurnWork | None = None
        self._late: list[HistoryEvent] = []
        self._late_seq = 0
        self._unrecorded: list[Turn] = []
        self._outcomes: list[StepFinished] = []
        self._refused: tuple[tuple[int, str], ...] = ()
        self._running: dict[int, RunningStep] = {}
        self._scheduled_at = 0
        self._pending_queries: tuple[PendingQuery, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether nothing would be lost if its program were thrown away."""
        return not self.held and not self._busy and self._next is None

    @property
    def busy(self) -> bool:
        """Whether a commit or a read is in flight."""
        return self._busy

    @property
    def steps(self) -> tuple[RunningStep, ...]:
        return tuple(self._running.values())

    # --- what comes in ---

    def work(self, work: TurnWork) -> None:
        """A lease on this execution. It may arrive before the answer that ended the lease before: that comes first."""
        if self._busy:
            self._next = work
            return
        if self._machine is not None and work.token.epoch != self._token.epoch + 1:
            # Somebody else has held it meanwhile: what his turns did is in the history, not in this program.
            self._discard()
        self._token = work.token
        self.workflow_id, self.kind = work.workflow_id, work.kind
        if not self.held:
            self.held = True
            self._runtime.held += 1
        self._scheduled_at = work.scheduled_at
        self._take_in(work.events, work.last_seq)

    def pending_events(self, pending_events: PendingEvents) -> None:
        if self.held:
            self._take_in(pending_events.events, pending_events.last_seq)

    def lost(self, epoch: int) -> None:
        """The lease is over, by somebody else's doing."""
        if self.held and epoch >= self._token.epoch:
            self.drop()

    def drop(self) -> None:
        """Forget everything about the execution; its history is safe."""
        self._free()
        self._discard()
        if self._running:
            for step in self._running.values():
                step.cancel()
            self._running.clear()
        self._outcomes = []
        if self._next is None:
            self._runtime.on_closed(self.id)

    def _free(self) -> None:
        if self.held:
            self.held = False
            self._runtime.turn_released()

    def evict(self) -> None:
        """Free the memory of an idle program."""
        self._discard()

    def _discard(self) -> None:
        self._unrecorded = []
        self._refused = ()
        self._late = []
        self._late_seq = 0
        if self._machine is not None:
            self._machine.close()
            self._machine = None
        self.known = 0

    def _take_in(self, events: tuple[HistoryEvent, ...], last_seq: int) -> None:
        if self._busy:
            self._late += events
            self._late_seq = max(self._late_seq, last_seq)
            return
        if self._machine is None and events and events[0].seq == 1:
            self._machine = Machine(self._make)
        if self._machine is None or not self._absorb(events, last_seq):
            self._in_background(self._load())
            return
        self._advance()

    def _absorb(self, events: Any, last_seq: int) -> bool:
        """Feed what follows on; whether nothing is missing up to `last_seq`."""
        machine = self._machine
        assert machine is not None, "only a built program can be fed"
        for event in events:
            if event.seq == self.known + 1:
                machine.feed(event)
                self.known += 1
        return self.known >= last_seq

    # --- looking at the program ---

    def show(self, last_seq: int, callback: QueryCallback) -> None:
        """Let `callback` see the program when all it has done is recorded and it has seen `last_seq`; None if that does
        not come about here, or not soon."""
        self._pending_queries = (*self._pending_queries, PendingQuery(last_seq, callback))
        if not self._busy:
            self._serve_queries()
            self._fail_queries()

    def _serve_queries(self) -> None:
        """Nothing is in flight: those may look who need not wait for more."""
        queries, self._pending_queries = self._pending_queries, ()
        for query in queries:
            machine = self._machine
            if machine is None or machine.has_pending_events or machine.ended or self.known < query.last_seq:
                query.rounds -= 1
                if query.rounds:
                    self._pending_queries = (*self._pending_queries, query)
                else:
                    query.callback(None)
            elif not query.callback(machine):
                self._rebuild()

    def _fail_queries(self) -> None:
        """Nothing will come that is worth waiting for."""
        queries, self._pending_queries = self._pending_queries, ()
        for query in queries:
            query.callback(None)

    def _rebuild(self) -> None:
        """The live program is not what its history says any more."""
        self._discard()
        if self.held:
            self._in_background(self._load())

    # --- going on ---

    def _advance(self) -> None:
        """Run what there is to run, then record it. Never leaves the program half-run with nothing in flight."""
        try:
            self._step_forward()
        except ProgramError as error:
            self._park(_stuck(error))
        except Exception as error:  # noqa: BLE001 - one broken execution must not take the others down
            log.exception("a turn of execution %s broke the worker's own code", self.id)
            self._park(StuckReason(code="internal_error", message=traceback.format_exc()[-4_000:] or str(error)))

    def _step_forward(self) -> None:
        machine = self._machine
        if machine is None or self._busy or not self.held:
            return
        asks = False
        if machine.pending_events:
            turn = self._run_turn(machine, self._runtime.now())
            # Those before it have no commands: they would have been recorded.
            asks = bool(turn.commands)
            self._unrecorded.append(turn)
            if self._runtime.draining and machine.wants_steps() and not machine.ended:
                self._give_back()
                return
            if not machine.ended and not (asks and _promises(turn)):
                self._start_steps(machine)
        if asks or machine.ended or self._outcomes or not self._running:
            self._commit(machine)

    def _run_turn(self, machine: Machine, started_at: int) -> Turn:
        result = machine.turn()
        turn = Turn(
            up_to=result.up_to,
            commands=tuple(result.commands),
            scheduled_at=self._scheduled_at or started_at,
            started_at=started_at,
        )
        self._scheduled_at = 0
        if result.refused:
            self._refused += tuple(result.refused)
        for number in result.dropped_steps:
            running = self._running.pop(number, None)
            if running is not None:
                running.cancel()
            self._outcomes = [outcome for outcome in self._outcomes if outcome.step_no != number]
        return turn

    def _start_steps(self, machine: Machine) -> None:
        for request in machine.unstarted_steps():
            if self._outcomes and self._already_ran(request):
                continue
            running = self._running.get(request.step_no)
            if running is not None:
                if running.request.name == request.name:
                    running.request = request
                    continue
                running.cancel()
            self._running[request.step_no] = RunningStep(self._runtime, self, request)

    def _already_ran(self, request: StepRequest) -> bool:
        """A rebuilt program asks again for a step whose outcome is at hand, not yet recorded."""
        for index, outcome in enumerate(self._outcomes):
            if outcome.step_no == request.step_no and outcome.name == request.name:
                self._outcomes[index] = structs.replace(outcome, up_to=request.up_to)
                return True
        return False

    def step_done(self, step: RunningStep, outcome: StepFinished) -> None:
        """Its outcome is recorded, unless the step is no longer wanted."""
        if self._running.get(outcome.step_no) is not step:
            return
        del self._running[outcome.step_no]
        self._outcomes.append(outcome)
        if not self._busy:
            self._advance()

    # --- recording ---

    def _commit(self, machine: Machine) -> None:
        # Nothing may follow the last event; should the end be refused, these outcomes are still wanted.
        steps = () if machine.ended else tuple(self._outcomes)
        # The last turn needs no row of its own if it is empty and a step that it has asked for carries its number. An
        # earlier one does: the step's row comes after those of later turns, and a history that is cut between them
        # would have lost it.
        turns = tuple(self._unrecorded)
        if steps and turns and not turns[-1].commands:
            for step in steps:
                if step.up_to == turns[-1].up_to:
                    turns = turns[:-1]
                    break
        base = self.known
        self._unrecorded = []
        ahead: Turn | None = None
        if steps:
            self._outcomes = []
            ahead = self._run_ahead(machine, turns, steps)
        quiet = not (self._running or machine.ended or machine.wants_steps())
        request = CompleteTurn(
            org=self._runtime.org,
            execution_id=self.id,
            token=self._token,
            base_seq=base,
            worker=self._runtime.session,
            turns=turns,
            steps=steps,
            after_steps=ahead,
            waiting_for=machine.waits() if quiet else None,
            unread=machine.unread() if machine.ended else (),
            refused=self._refused,
        )
        self._refused = ()
        self._send(request)

    def _run_ahead(self, machine: Machine, turns: tuple[Turn, ...], steps: tuple[StepFinished, ...]) -> Turn:
        """Run the program on the results of `steps` as if they were already events: their numbers follow from the
        rows."""
        seq = self.known
        for turn in turns:
            seq += len(turn.commands) or 1
        for step in steps:
            seq += 1
            machine.feed(HistoryEvent(seq, step.finished_at, step))
        return self._run_turn(machine, steps[-1].finished_at)

    def _send(self, request: CompleteTurn) -> None:
        self._busy = True
        self._request = request
        asked = self._runtime.workers.complete_turn(request)
        answer = asked if isinstance(asked, asyncio.Future) else asyncio.ensure_future(asked)
        answer.add_done_callback(self._answered)

    def _answered(self, done: asyncio.Future[TurnAnswer]) -> None:
        request, self._request = self._request, None
        assert request is not None, "what was sent is kept until it is answered"
        self._busy = False
        if not done.cancelled():
            # Read in every case: an exception nobody looks at is printed when it is dropped.
            error = done.exception()
            if self.held:
                if error is None:
                    self._recorded(request, done.result())
                else:
                    self._take_failure(request, error)
        if self._next is not None:
            self._take_next()
        if not self.held:
            self._runtime.on_idle()
        if self._pending_queries and not self._busy:
            self._fail_queries()

    def _take_next(self) -> None:
        """A lease that arrived while something was in flight."""
        if self._next is not None and not self._busy:
            work, self._next = self._next, None
            self.work(work)

    def _take_failure(self, request: CompleteTurn, error: BaseException) -> None:
        if isinstance(error, StaleClaim):
            log.info("execution %s is no longer ours: %s", self.id, error)
            self.drop()
        elif isinstance(error, ExecutionNotFound):
            log.warning("execution %s is gone, and what was done for it: %s", self.id, error)
            self.drop()
        elif isinstance(error, InvalidRequest) and error.details.get("field") == "base_seq":
            log.warning("the history of execution %s is shorter than it was: %s", self.id, error)
            self._give_back()
        elif isinstance(error, NOT_NOW) and not self._runtime.draining:
            self._busy = True
            self._runtime.loop.call_later(RETRY_S, self._send, request)
            self._fail_queries()
        elif isinstance(error, NOT_NOW):
            self.drop()
        else:
            code = error.code if isinstance(error, HoldfastError) else "internal_error"
            self._park(StuckReason(code=code, message=f"its turn could not be recorded: {error!r}"))

    def _recorded(self, request: CompleteTurn, answer: TurnAnswer) -> None:
        if answer.closed:
            self.drop()
        elif answer.verdict is not RECORDED or self._runtime.replay_always:
            self._discard()
            if answer.released:
                self._free()
            else:
                self._in_background(self._load())
        else:
            ahead = request.after_steps
            if answer.released:
                self._free()
            elif ahead is not None and not ahead.commands:
                self._unrecorded.append(ahead)
            self._number_rows(request, answer)
            warn_at = self._runtime.config.history_warning_events
            if request.base_seq < warn_at <= self.known:
                log.warning(
                    "execution %s has a history of %d events: rebuilding it takes longer and longer",
                    self.id,
                    self.known,
                )
            self._catch_up()

    def _number_rows(self, request: CompleteTurn, answer: TurnAnswer) -> None:
        """Our rows have got their numbers; feed what came before them, if we have it. If not, it has to be read."""
        if answer.first_seq == request.base_seq + 1:
            self.known = answer.last_seq
            return
        between = range(request.base_seq + 1, answer.first_seq)
        late = {event.seq: event for event in self._late}
        if all(seq in late for seq in between):
            self._absorb([late[seq] for seq in between], 0)
            self.known = answer.last_seq
        else:
            self._late_seq = max(self._late_seq, answer.last_seq)

    def _catch_up(self) -> None:
        """Take in what arrived while the commit or a read was in flight, then go on."""
        if self._late or self._late_seq > self.known:
            late, self._late = self._late, []
            if not self._absorb(sorted(late, key=_seq), self._late_seq) and self.held:
                self._in_background(self._load())
                return
        if self._pending_queries:
            self._serve_queries()
        self._after_commit()

    def _after_commit(self) -> None:
        machine = self._machine
        if machine is None or not self.held:
            return
        if self._runtime.draining and not self._running and not self._outcomes:
            self._give_back()
            return
        # With news the turn comes first: the outcome of a step may be among them.
        if not machine.pending_events:
            self._start_steps(machine)
        self._advance()

    # --- the rest ---

    def _in_background(self, work: Any) -> None:
        self._busy = True
        task = self._runtime.loop.create_task(work)
        task.add_done_callback(self._background_done)

    def _background_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._busy = False
            if self.held and isinstance(error, ExecutionNotFound):
                log.warning("execution %s is gone: %s", self.id, error)
                self.drop()
            elif self.held:
                log.error("execution %s could not be loaded", self.id, exc_info=error)
                self._park(StuckReason(code="internal_error", message=f"its history could not be read: {error!r}"))
        self._take_next()
        if not self._busy:
            self._fail_queries()

    async def _load(self) -> None:
        """Read what is missing of the history: all of it for a program that has to be rebuilt."""
        while True:
            try:
                events = await self._runtime.workers.history(self._runtime.org, self.id, self.known)
                break
            except EngineStopped:
                raise
            except NOT_NOW as error:
                log.warning("the history of execution %s can't be read yet: %s", self.id, error)
                await asyncio.sleep(RETRY_S)
        self._busy = False
        if not self.held:
            return
        if not events and self._machine is None:
            raise ExecutionNotFound(f"execution {self.id} has no history")
        try:
            if self._machine is None:
                self._machine = Machine(self._make)
                self._machine.replay(events)
                self.known = events[-1].seq
            else:
                self._absorb(events, events[-1].seq if events else self.known)
        except ProgramError as error:
            self._park(_stuck(error))
            return
        except Exception:  # noqa: BLE001 - as above
            log.exception("execution %s could not be replayed", self.id)
            self._park(StuckReason(code="internal_error", message=traceback.format_exc()[-4_000:]))
            return
        self._catch_up()

    def _park(self, reason: StuckReason) -> None:
        about = {"workflow_execution_id": self.id, "workflow_id": self.workflow_id, "workflow_kind": self.kind}
        log.warning("execution %s is stuck: %s", self.id, reason.message, extra=about)
        whole = StuckReason(
            code=reason.code,
            message=reason.message,
            at=self._runtime.now(),
            event_seq=reason.event_seq,
            recorded=reason.recorded,
            attempted=reason.attempted,
            recorded_line=reason.recorded_line,
            attempted_line=reason.attempted_line,
            worker=self._runtime.session,
            build=self.build,
        )
        request = ParkTurn(org=self._runtime.org, execution_id=self.id, token=self._token, reason=whole)
        parked = asyncio.ensure_future(self._runtime.workers.park_turn(request))
        parked.add_done_callback(_log_failure)
        self.drop()

    def _give_back(self) -> None:
        """Shutting down: let another worker go on from here."""
        request = ReleaseWork(org=self._runtime.org, session=self._runtime.session, turns=((self.id, self._token),))
        asyncio.ensure_future(self._runtime.workers.release(request)).add_done_callback(_log_failure)
        self.drop()


def _promises(turn: Turn) -> bool:
    """Whether a promise was made: whoever a step tells of it must find it, so that steps wait for the commit."""
    return CreatePromise in map(type, turn.commands)


def _seq(event: HistoryEvent) -> int:
    return event.seq


def _stuck(error: ProgramError) -> StuckReason:
    if isinstance(error, DeterminismError):
        return StuckReason(
            code=error.code,
            message=str(error),
            event_seq=error.event_seq,
            recorded=error.recorded,
            attempted=error.attempted,
            recorded_line=error.recorded_line,
            attempted_line=error.attempted_line,
        )
    return StuckReason(code=error.code, message=str(error))


def _log_failure(done: asyncio.Future[None]) -> None:
    if (
        not done.cancelled()
        and done.exception() is not None
        and not isinstance(done.exception(), (StaleClaim, *NOT_NOW))
    ):
        log.error("a report was refused: %s", done.exception())
