"""A worker's session on the server's side: what it holds, what is on its way to it, what it has sent.

    stream ─► requests ─► contract ─► answers ─┐
    contract ─► poll ─► work ──────────────────┴─► messages, kept until the worker has them ─► stream

It outlives its stream: a worker that comes back gets whatever it has not got, and what it sends twice counts once. It
promises that a worker reports only on what was handed to it, and only once on each task: the slots of a session are
counted by its reports. All on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

from msgspec import structs

from holdfast.contract import workers as wk
from holdfast.errors import (
    NOT_NOW,
    EngineStopped,
    HoldfastError,
    InvalidRequest,
    SessionLost,
    StaleAttempt,
    StaleClaim,
    Unavailable,
    Unsupported,
)
from holdfast.model.events import TurnEvent
from holdfast.model.values import Token
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc.failures import error_message
from holdfast.transport.grpc.reports import Report, heartbeat_answer_message, report, turn_answer_message
from holdfast.transport.grpc.sessions import check_lease
from holdfast.transport.grpc.work import TokenKey, work_message

log = logging.getLogger("holdfast.server.grpc")

MESSAGE_BYTES = 1024 * 1024
"""A message is closed when it has so many, so that one large payload does not hold up what came before it."""
FRESH_EVENTS = 8
MOST_UNDER_WAY = 20_000
"""Requests that are not answered yet: beyond this the stream is not read."""

Attempt = tuple[str, int, int]
Then = Callable[[asyncio.Future[Any]], None]


def _lacks_events(work: wk.Work) -> TypeGuard[wk.TurnWork]:
    return isinstance(work, wk.TurnWork) and not work.events and work.last_seq <= FRESH_EVENTS


class WorkerSession:
    """See the module's text. `ended` is set when it is over, and says why if not by the worker's own wish."""

    def __init__(
        self, workers: wk.Sessions, request: wk.RegisterWorker, *, proof: bytes, token_key: TokenKey, unread_bytes: int
    ) -> None:
        self.org = request.org
        self.id = request.session
        self.lease_s = request.lease_s
        self.proof = proof
        self.wake = asyncio.Event()
        self.over = asyncio.Event()
        self.quiet = asyncio.Event()
        self.leaving_within_s: float | None = None
        self.room = asyncio.Event()
        self.paused = False
        self.closing = False
        self.ended = False
        self.farewell: HoldfastError | None = None
        self.received = 0
        self._workers = workers
        self._token_key = token_key
        self._unread_bytes = unread_bytes
        self._turns: dict[str, Token] = {}
        self._tasks: dict[Attempt, int] = {}
        self._queries: set[str] = set()
        self._answers: deque[tuple[pb.Answer, int]] = deque()
        self._work: deque[tuple[pb.Work, int]] = deque()
        self._kept: deque[tuple[pb.ServerMessage, int]] = deque()
        self._unread = 0
        self._number = 0
        self._to_send: deque[pb.ServerMessage] = deque()
        self._under_way: set[asyncio.Future[Any]] = set()
        self._pump: asyncio.Task[None] | None = None
        self.room.set()

    def start(self) -> None:
        self._pump = asyncio.get_running_loop().create_task(self._poll(), name=f"holdfast-session-{self.id}")

    def stop(self) -> None:
        if self._pump is not None:
            self._pump.cancel()

    def end(self, why: HoldfastError | None) -> None:
        """Nothing more comes of it. The stream, if there is one, tells the worker and ends."""
        if not self.ended:
            self.ended, self.farewell = True, why
        self.wake.set()
        self.over.set()
        self.quiet.set()

    async def announce(self, within_s: float) -> None:
        """This server goes soon: the worker is told, and gets nothing more. `quiet` is set when all that it holds is
        reported and answered, or the session is over."""
        self.leaving_within_s = within_s
        await self._workers.drain(self.id)
        self.wake.set()
        await asyncio.sleep(0)  # what was handed out just now is noted first
        self._check_quiet()

    def _check_quiet(self) -> None:
        if self.leaving_within_s is not None and not (self._turns or self._tasks or self._under_way):
            self.quiet.set()

    async def finish(self) -> None:
        """This server goes: what the worker holds of executions is free, and it is sent away with its tasks."""
        self.end(Unavailable("the server is going away"))
        turns = tuple(self._turns.items())
        await self._workers.drain(self.id)
        await self._workers.release(wk.ReleaseWork(org=self.org, session=self.id, turns=turns))

    def take_over(self, running: tuple[wk.RunningAttempt, ...], kept: tuple[wk.RunningAttempt, ...]) -> None:
        """The worker runs these attempts since an earlier session. It is told of those that no longer count."""
        for execution_id, task_no, token in running:
            self._tasks[execution_id, task_no, token.epoch] = token.nonce
        for execution_id, task_no, token in set(running) - set(kept):
            self._post(wk.TaskStop(execution_id, task_no, token.epoch, "stale"))

    # --- from the engine ---

    async def _poll(self) -> None:
        try:
            while True:
                given = await self._workers.poll(self.id)
                for work in given:
                    self._note(work)
                lacking = [work for work in given if _lacks_events(work)]
                completed = iter(await asyncio.gather(*map(self._complete, lacking)))
                for work in given:
                    self._post(next(completed) if _lacks_events(work) else work)
        except SessionLost as lost:
            self.end(lost)
        except EngineStopped:
            if not self.closing:
                self.end(Unavailable("the server is going away"))
        except HoldfastError as error:
            log.exception("session %s has broken", self.id)
            self.end(error)

    async def _complete(self, work: wk.TurnWork) -> wk.Work:
        """An execution that nobody has run yet gets its few events at once: the worker need not ask for them."""
        try:
            events = await self._workers.history(self.org, work.execution_id)
        except HoldfastError:
            return work
        if any(isinstance(event.body, TurnEvent) for event in events):
            return work
        return structs.replace(work, events=tuple(events))

    def _post(self, work: wk.Work) -> None:
        message = work_message(work, self._token_key)
        size = message.ByteSize()
        self._work.append((message, size))
        self._count(size)
        self.wake.set()

    def _count(self, size: int) -> None:
        """What waits for a worker that does not read must not fill the memory."""
        self._unread += size
        if self._unread > self._unread_bytes:
            self.end(SessionLost(f"worker session {self.id} does not read what it is sent"))

    def _note(self, work: wk.Work) -> None:
        match work:
            case wk.TurnWork():
                self._turns[work.execution_id] = work.token
            case wk.TaskWork():
                self._tasks[work.execution_id, work.task_no, work.token.epoch] = work.token.nonce
            case wk.QueryWork():
                self._queries.add(work.query_id)
            case wk.LostTurn():
                held = self._turns.get(work.execution_id)
                if held is not None and held.epoch <= work.epoch:
                    del self._turns[work.execution_id]
                    self._check_quiet()

    # --- to the worker ---

    def attach(self, received: int) -> None:
        """A new stream, and the last message that came through the one before: what followed is sent again."""
        if received > self._number:
            raise InvalidRequest(f"message {received} was never sent", field="received")
        self.acknowledge(received)
        self._to_send = deque(message for message, _ in self._kept)
        self.wake.set()

    def acknowledge(self, received: int) -> None:
        while self._kept and self._kept[0][0].number <= received:
            _, size = self._kept.popleft()
            self._unread -= size

    def next_message(self) -> pb.ServerMessage | None:
        """What is to be sent next; None if there is nothing. It is kept until the worker has it."""
        if self._to_send:
            return self._to_send.popleft()
        if not self._answers and not self._work:
            return None
        self._number += 1
        message = pb.ServerMessage(number=self._number, received=self.received)
        size = 0
        while self._work and size < MESSAGE_BYTES:
            part, length = self._work.popleft()
            size += length
            message.work.append(part)
        while self._answers and size < 2 * MESSAGE_BYTES:
            answer, length = self._answers.popleft()
            size += length
            message.answers.append(answer)
        self._kept.append((message, size))
        return message

    # --- from the worker ---

    def take(self, message: pb.WorkerMessage) -> None:
        """Take in a message. Raises InvalidRequest if it does not follow on."""
        self.acknowledge(message.received)
        if message.number:
            if message.number <= self.received:
                return
            if message.number != self.received + 1:
                raise InvalidRequest(
                    f"message {message.number} came after {self.received}: one is missing", field="number"
                )
            self.received = message.number
        elif message.requests:
            raise InvalidRequest("a message with requests needs a number", field="number")
        for request in message.requests:
            self._request(request)

    def _request(self, request: pb.Request) -> None:
        kind = request.WhichOneof("kind")
        try:
            if kind == "drain":
                self._follow(request.id, self._workers.drain(self.id))
            elif kind == "pause":
                self.paused = request.pause.paused
                change = self._workers.pause if self.paused else self._workers.resume
                self._follow(request.id, change(self.id))
            elif kind == "close":
                self.closing = True
                self._follow(request.id, self._workers.unregister(self.org, self.id), lambda _: self.end(None))
            else:
                found = report(request, self.org, self.id)
                if found is None:
                    raise Unsupported("this server does not know what the worker asks for: upgrade it")
                self._submit(request.id, found)
        except HoldfastError as error:
            self._answer(pb.Answer(id=request.id, error=error_message(error)))

    def _submit(self, request_id: int, found: Report) -> None:
        workers = self._workers
        match found:
            case wk.CompleteTurn():
                self._check_turn(found.execution_id, found.token)
                self._follow(request_id, workers.complete_turn(found), partial(self._turn_answered, found))
            case wk.ParkTurn():
                self._check_turn(found.execution_id, found.token)
                release = partial(self._release_turn, found.execution_id, found.token)
                self._follow(request_id, workers.park_turn(found), release)
            case wk.CompleteTask():
                self._report_task(request_id, found, workers.complete_task)
            case wk.FailTask():
                self._report_task(request_id, found, workers.fail_task)
            case wk.DeferTask():
                self._report_task(request_id, found, workers.defer_task)
            case wk.IssueTaskToken():
                self._follow(request_id, asyncio.wrap_future(workers.issue_task_token(found)))
            case wk.Heartbeat():
                check_lease(found.lease_s)
                self._follow(request_id, asyncio.wrap_future(workers.heartbeat(found)))
            case wk.ReleaseWork():
                self._release(request_id, found)
            case wk.AnswerQuery():
                if found.query_id in self._queries:
                    self._queries.discard(found.query_id)
                    self._follow(request_id, workers.answer_query(found))
                else:
                    self._answer(pb.Answer(id=request_id))

    # --- what it holds ---

    def _check_turn(self, execution_id: str, token: Token) -> None:
        if self._turns.get(execution_id) != token:
            raise StaleClaim(
                f"this worker does not hold execution {execution_id}; nothing was recorded: drop the cached program",
                execution_id=execution_id,
                epoch=token.epoch,
            )

    def _turn_answered(self, request: wk.CompleteTurn, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if isinstance(error, StaleClaim) or (error is None and (done.result().released or done.result().closed)):
            self._drop_turn(request.execution_id, request.token)

    def _release_turn(self, execution_id: str, token: Token, done: asyncio.Future[Any]) -> None:
        if not done.cancelled() and (done.exception() is None or isinstance(done.exception(), StaleClaim)):
            self._drop_turn(execution_id, token)

    def _drop_turn(self, execution_id: str, token: Token) -> None:
        # The next lease may have been handed out in the commit that ended this one.
        if self._turns.get(execution_id) == token:
            del self._turns[execution_id]

    def _report_task(
        self, request_id: int, found: wk.CompleteTask | wk.FailTask | wk.DeferTask, send: Callable[[Any], Any]
    ) -> None:
        key = (found.execution_id, found.task_no, found.token.epoch)
        if self._tasks.get(key) != found.token.nonce:
            raise StaleAttempt(
                f"this worker does not run attempt {found.token.epoch} of task {found.task_no} of execution "
                f"{found.execution_id}, or has reported on it; nothing was recorded",
                execution_id=found.execution_id,
                task_no=found.task_no,
                attempt=found.token.epoch,
            )
        del self._tasks[key]
        self._follow(request_id, send(found), partial(self._task_answered, key, found.token.nonce))

    def _task_answered(self, key: Attempt, nonce: int, done: asyncio.Future[Any]) -> None:
        """A report that could not be taken just now is sent again."""
        if not done.cancelled() and isinstance(done.exception(), NOT_NOW):
            self._tasks[key] = nonce

    def _release(self, request_id: int, found: wk.ReleaseWork) -> None:
        turns = tuple(held for held in found.turns if self._turns.get(held[0]) == held[1])
        tasks = []
        for execution_id, task_no, token in found.tasks:
            if self._tasks.pop((execution_id, task_no, token.epoch), None) == token.nonce:
                tasks.append((execution_id, task_no, token))
        for execution_id, token in turns:
            self._drop_turn(execution_id, token)
        request = wk.ReleaseWork(org=self.org, session=self.id, turns=turns, tasks=tuple(tasks))
        self._follow(request_id, self._workers.release(request))

    # --- answers ---

    def _follow(self, request_id: int, awaited: Any, then: Then | None = None) -> None:
        """Answer the request when the engine has; `then` comes after that."""
        done: asyncio.Future[Any] = asyncio.ensure_future(awaited)
        self._under_way.add(done)
        if len(self._under_way) >= MOST_UNDER_WAY:
            self.room.clear()
        done.add_done_callback(partial(self._followed, request_id, then))

    def _followed(self, request_id: int, then: Then | None, done: asyncio.Future[Any]) -> None:
        self._under_way.discard(done)
        if len(self._under_way) < MOST_UNDER_WAY:
            self.room.set()
        error = Unavailable("the server is going away") if done.cancelled() else done.exception()
        if isinstance(error, HoldfastError):
            answer = pb.Answer(id=request_id, error=error_message(error))
        elif error is not None:
            log.error("a report of session %s broke the server", self.id, exc_info=error)
            told = pb.Error(code="internal_error", message="the server's log says what happened")
            answer = pb.Answer(id=request_id, error=told)
        else:
            answer = self._good_answer(request_id, done.result())
        self._answer(answer)
        if then is not None:
            then(done)
        self._check_quiet()

    def _good_answer(self, request_id: int, result: object) -> pb.Answer:
        match result:
            case wk.TurnAnswer():
                return pb.Answer(id=request_id, turn=turn_answer_message(result))
            case wk.HeartbeatAnswer():
                if not result.alive:
                    # Another process has found that its lease was over, and does not know this desk.
                    self.end(SessionLost(f"worker session {self.id} had expired"))
                return pb.Answer(id=request_id, heartbeat=heartbeat_answer_message(result))
        return pb.Answer(id=request_id)

    def _answer(self, answer: pb.Answer) -> None:
        if answer.id:
            size = answer.ByteSize()
            self._answers.append((answer, size))
            self._count(size)
            self.wake.set()
