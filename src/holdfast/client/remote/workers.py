"""`contract.workers.Workers` over one stream to a server: what a worker in another process runs on.

Everything that waits to be sent goes in one message; so does everything that has come. When the server is gone, or
knows the session no more, another session takes its place, with whichever server there is, and the worker is told what
it has lost by that: all turns, since whether they were recorded is not known and only the history can tell. The tasks
it runs go on; reports on tasks that were not answered are shown to the new server, where they count at most once.
A server that is about to stop says so: if there is another, its turns are finished first, so that none is lost.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import logging
import random
import time
from collections.abc import Callable
from typing import Any, cast

import grpc
from msgspec.structs import replace

from holdfast.client.remote.channels import Address, addresses, error_of, is_local, metadata, open_channel
from holdfast.client.remote.pending_request import About, Attempt, PendingRequest, error_of_answer, is_attempt, turn_of
from holdfast.client.remote.sessions import SessionLink
from holdfast.contract import workers as wk
from holdfast.errors import (
    EngineStopped,
    HoldfastError,
    InvalidRequest,
    PayloadTooLarge,
    ServerUnreachable,
    SessionLost,
    StaleClaim,
    Unavailable,
)
from holdfast.model.events import HistoryEvent
from holdfast.model.values import Failure, Token
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc.events import event
from holdfast.transport.grpc.reports import Report, attempt_message, heartbeat_answer, report_message
from holdfast.transport.grpc.sessions import open_message
from holdfast.transport.grpc.work import key_of, work

log = logging.getLogger("holdfast.client.remote")

HISTORY = "/holdfast.v1.WorkerService/ReadHistory"
HISTORY_PAGE = 1_000
CALL_LIMIT_S = 30.0
KEEPALIVE_S = 20.0
MOVE_ON_S = 2.0
"""How long a server that does not answer keeps the session, if there are others."""
GOODBYE_S = 2.0
ISSUED_WITHIN_S = 1.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
KEPT_KEYS = 50_000
OLD_SERVER = wk.OutputLimits(64 * 1024, 100)
"""For one that ignores what tasks say: their bodies must not fail for that."""


class RemoteWorkers:
    """One worker's connection. `server` is `grpc://host:port`, `grpcs://` for TLS, with several hosts if there are
    several servers. `authority` are the certificates to trust (PEM), if not the system's.

    The first opening is given up after `connect_timeout_s`; later the worker tries for as long as it runs.
    """

    def __init__(
        self,
        server: str,
        *,
        api_key: str | None = None,
        authority: bytes | None = None,
        connect_timeout_s: float | None = 60.0,
    ) -> None:
        self._addresses = addresses(server)
        self._metadata = metadata(api_key)
        self._authority = authority
        self._connect_timeout_s = connect_timeout_s
        self._loop: asyncio.AbstractEventLoop
        self._link: SessionLink | None = None
        self._request: wk.RegisterWorker | None = None
        self._org = ""
        self._lease_s = 30.0
        self._ids = itertools.count(1)
        self._pending: dict[int, PendingRequest] = {}
        self._post: list[wk.Work] = []
        self._waiter: asyncio.Future[list[wk.Work]] | None = None
        self._previous: tuple[str, bytes] | None = None
        self._unsettled: list[PendingRequest] = []
        self._turns: dict[str, Token] = {}
        self._tasks: dict[Attempt, Token] = {}
        self._moving: asyncio.Task[None] | None = None
        self._at: Address | None = None
        self._left_to: SessionLink | None = None
        self._keys: dict[str, bytes] = {}
        self._offset = 0
        self._output = OLD_SERVER
        self._received_at = 0.0
        self._stopped = False
        self._draining = False
        self._paused = False
        if api_key is not None and any(not at.secure and not is_local(at.target) for at in self._addresses):
            log.warning("the API key is sent unencrypted: use grpcs:// unless the network is your own")

    # --- what the worker needs besides the contract ---

    def now(self) -> int:
        """The server's time, as far as it is known here, in microseconds."""
        return time.time_ns() // 1000 + self._offset

    def token_key(self, execution_id: str) -> bytes:
        """What the tokens of an execution are made from: it came with the work. From any thread."""
        key = self._keys.get(execution_id)
        if key is None:
            raise Unavailable(
                f"the key for the tokens of execution {execution_id} has not been handed out to this worker"
            )
        return key

    def output_limits(self) -> wk.OutputLimits:
        return self._output

    @property
    def org(self) -> str:
        """The org whose work it does: the key decides."""
        return self._org

    @property
    def session(self) -> str:
        """The present session's name, as the server has given it."""
        return self._previous[0] if self._previous is not None else ""

    @property
    def connected(self) -> bool:
        link = self._link
        return link is not None and link.connected

    # --- sessions ---

    async def register(self, request: wk.RegisterWorker) -> None:
        """Open a session with one of the servers, whichever can be reached."""
        self._loop = asyncio.get_running_loop()
        self._request, self._lease_s = request, request.lease_s
        self._start(*await self._reach(open_message(request), first=True))

    def _start(self, link: SessionLink, opened: pb.SessionOpened) -> None:
        self._org = opened.org_id
        self._offset = opened.now - time.time_ns() // 1000
        self._previous = (opened.session, opened.proof)
        if opened.max_output_chunks:
            self._output = wk.OutputLimits(opened.max_output_bytes, opened.max_output_chunks)
        self._received_at = time.monotonic()
        self._link = link
        # Until it hears this, the server can't know that anybody knows of the session, and keeps it only for a moment.
        assert self._request is not None, "a session is opened with a request"
        first = wk.Heartbeat(org=self._request.org, session=self._request.session, lease_s=self._lease_s)
        link.send(report_message(first, 0))

    def _session_over(self, link: SessionLink, why: HoldfastError) -> None:
        """On the event loop. The worker loses its turns; whatever else it does goes on."""
        if link is not self._link or self._stopped:
            return
        log.warning("the session with the server is over, opening another: %s", why)
        self._link = self._left_to = None
        self._unsettled += [pending for pending in list(self._pending.values()) if is_attempt(pending.about)]
        self._fail_all(Unavailable("the session with the server is over"))
        lost: list[wk.Work] = [wk.LostTurn(key, token.epoch) for key, token in self._turns.items()]
        self._turns = {}
        self._deliver(lost, [])
        self._moving = self._loop.create_task(self._move())

    def _server_stopping(self, link: SessionLink, within_s: float) -> None:
        """On the event loop. Where there is another server, go there as soon as no turn runs; it hands out no more.
        Otherwise, or when this worker is about to stop, too, report what there is for as long as it listens."""
        if link is not self._link or self._stopped:
            return
        log.info("the server is about to stop, within %g s at most", within_s)
        if len(self._addresses) > 1:
            self._left_to = link
            self._depart_if_free()

    def _depart_if_free(self) -> None:
        if self._left_to is not None and not self._turns and not self._draining:
            link, self._left_to = self._left_to, None
            link.depart()

    async def _move(self) -> None:
        """Put another session in the place of the lost one."""
        assert self._request is not None, "there was a session before"
        while True:
            opening = open_message(self._request)
            if self._previous is not None:
                opening.replaces, opening.replaces_proof = self._previous
                opening.leftovers.extend(pending.message for pending in self._unsettled)
                reported = {pending.about for pending in self._unsettled}
                opening.running.extend(
                    attempt_message(key[0], key[1], token) for key, token in self._tasks.items() if key not in reported
                )
            try:
                link, opened = await self._reach(opening, first=False)
                break
            except EngineStopped:
                return
            except InvalidRequest as error:
                # Another installation answers, or one whose secret has changed: it does not know the old session.
                log.warning("the server does not take over the tasks that run here: %s", error)
                self._previous = None
                stops: list[wk.Work] = [wk.TaskStop(*key, "session_lost") for key in self._tasks]
                self._tasks = {}
                self._deliver(stops, [])
        leftovers, self._unsettled = self._unsettled, []
        for pending in leftovers:
            # Recorded, or no longer wanted: the report is done with either way.
            self._tasks.pop(cast(Attempt, pending.about), None)
            pending.settle(pb.Answer())
        self._start(link, opened)
        if self._paused:
            await self.pause(True)
        if self._draining:
            await self._ask_briefly(lambda number: pb.Request(id=number, drain=pb.Drain()))

    async def _reach(self, opening: pb.OpenSession, *, first: bool) -> tuple[SessionLink, pb.SessionOpened]:
        began, pause_s = time.monotonic(), FIRST_PAUSE_S
        # The one that has just gone comes last: the others are more likely to be there.
        order = sorted(random.sample(self._addresses, len(self._addresses)), key=lambda address: address == self._at)
        for number in itertools.count():
            if self._stopped:
                raise EngineStopped("this worker has ended")
            address = order[number % len(order)]
            link = self._make_link(opening, address)
            link.start()
            try:
                opened = await asyncio.wrap_future(link.ready)
                self._at = address
                return link, opened
            except InvalidRequest:
                raise
            except HoldfastError as error:
                if first and not isinstance(error, Unavailable):
                    raise
                waited_s = time.monotonic() - began
                if first and self._connect_timeout_s is not None and waited_s > self._connect_timeout_s:
                    raise ServerUnreachable(f"no server has answered within {waited_s:.0f} s: {error}") from error
                log.warning("no session with the server at %s yet: %s", address.target, error)
            except BaseException:
                link.close()
                raise
            if number % len(order) == len(order) - 1:
                await asyncio.sleep(random.uniform(pause_s / 2, pause_s))  # noqa: S311 - spreads workers, no secret
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        raise AssertionError("it counts for ever")

    def _make_link(self, opening: pb.OpenSession, address: Address) -> SessionLink:
        keepalive_s = max(min(KEEPALIVE_S, self._lease_s / 2), 1.0)

        def connect() -> Any:
            return open_channel(address, keepalive_s=keepalive_s, authority=self._authority)

        wait_s = self._lease_s if len(self._addresses) == 1 else min(self._lease_s, MOVE_ON_S)
        return SessionLink(opening, self, connect, metadata=self._metadata, wait_s=wait_s)

    def poll(self, session: str) -> asyncio.Future[list[wk.Work]]:
        waiter: asyncio.Future[list[wk.Work]] = asyncio.get_running_loop().create_future()
        if self._stopped:
            waiter.set_exception(EngineStopped("this worker has ended"))
        elif self._request is None or session != self._request.session:
            waiter.set_exception(SessionLost(f"worker session {session} is not open"))
        elif self._post:
            waiter.set_result(self._post)
            self._post = []
        else:
            self._waiter = waiter
        return waiter

    async def pause(self, paused: bool) -> None:
        """Take no new work, or take some again. It counts for later sessions, too."""
        self._paused = paused
        await self._ask_briefly(lambda number: pb.Request(id=number, pause=pb.Pause(paused=paused)))

    async def drain(self, session: str) -> None:
        self._draining = True
        await self._ask_briefly(lambda number: pb.Request(id=number, drain=pb.Drain()))

    async def unregister(self, org: str, session: str) -> None:
        """Say goodbye, if anybody is there to hear it, and end."""
        if self._link is not None:
            self._link.leaving = True
        await self._ask_briefly(lambda number: pb.Request(id=number, close=pb.CloseSession()))
        self.stop()

    def stop(self) -> None:
        """End without a word: the server finds out by the lease."""
        self._stopped = True
        if self._moving is not None:
            self._moving.cancel()
        link, self._link = self._link, None
        if link is not None:
            link.close()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(EngineStopped("this worker has ended"))
            self._waiter = None
        self._fail_all(Unavailable("this worker has ended"))

    # --- reports ---

    def complete_turn(self, request: wk.CompleteTurn) -> asyncio.Future[wk.TurnAnswer]:
        return self._report(request, (request.execution_id, request.token), turn_of)

    async def park_turn(self, request: wk.ParkTurn) -> None:
        await self._report(request, (request.execution_id, request.token))

    async def complete_task(self, request: wk.CompleteTask) -> None:
        try:
            await self._report_task(request)
        except PayloadTooLarge as error:
            # Another attempt would end the same way.
            failure = Failure(type="PayloadTooLarge", message=error.message, code=error.code, non_retryable=True)
            await self._report_task(
                wk.FailTask(
                    org=request.org,
                    session=request.session,
                    execution_id=request.execution_id,
                    task_no=request.task_no,
                    token=request.token,
                    failure=failure,
                )
            )

    async def fail_task(self, request: wk.FailTask) -> None:
        await self._report_task(request)

    async def defer_task(self, request: wk.DeferTask) -> None:
        await self._report_task(request)

    async def _report_task(self, request: wk.CompleteTask | wk.FailTask | wk.DeferTask) -> None:
        about = (request.execution_id, request.task_no, request.token.epoch)
        try:
            await self._report(request, about)
        except PayloadTooLarge:
            if not request.output:
                raise
            await self._report(replace(request, output=()), about)  # what it said counts less than how it ended

    async def release(self, request: wk.ReleaseWork) -> None:
        for execution_id, token in request.turns:
            self._drop_turn(execution_id, token)
        for execution_id, task_no, token in request.tasks:
            self._tasks.pop((execution_id, task_no, token.epoch), None)
        if self._draining:
            await self._ask_briefly(lambda number: report_message(request, number))
        else:
            await self._report(request)
            self._depart_if_free()

    async def answer_query(self, request: wk.AnswerQuery) -> None:
        await self._report(request)

    def issue_task_token(self, request: wk.IssueTaskToken) -> concurrent.futures.Future[None]:
        done: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._ask_from_thread(request, lambda _: done.set_result(None), done)
        # Whoever gets the token may use it with the server at once, so it has to be there. This waits even on the event
        # loop: the answer comes in another thread, within a commit's time.
        concurrent.futures.wait([done], ISSUED_WITHIN_S)
        return done

    def renew(self, request: wk.Heartbeat) -> bool:
        """The stream needs the loop, too."""
        return False

    def heartbeat(self, request: wk.Heartbeat) -> concurrent.futures.Future[wk.HeartbeatAnswer]:
        done: concurrent.futures.Future[wk.HeartbeatAnswer] = concurrent.futures.Future()
        link = self._link
        if link is not None and link.connected and time.monotonic() - self._received_at > self._lease_s * 0.6:
            # The last heartbeat was not answered: the stream may be dead without anybody having said so.
            self._received_at = time.monotonic()
            link.suspect()
        # Whether the session is alive the server tells by ending it: another one then takes its place.
        self._ask_from_thread(
            request, lambda answer: done.set_result(replace(heartbeat_answer(answer.heartbeat), alive=True)), done
        )
        return done

    def _report(
        self,
        request: Report,
        about: About | None = None,
        read: Callable[[pb.Answer], Any] | None = None,
    ) -> asyncio.Future[Any]:
        """Sent at once. Whatever keeps it from being sent is in the future, too."""
        future: asyncio.Future[Any] = self._loop.create_future()
        try:
            message = report_message(request, next(self._ids))
            self._check_size(message)
            self._send(PendingRequest(future, message, about, read))
        except HoldfastError as error:
            future.set_exception(error)
        return future

    def _check_size(self, message: pb.Request) -> None:
        link = self._link
        limit = link.opened.max_whole_bytes - 1024 if link is not None and link.opened is not None else 0
        size = message.ByteSize()
        if limit and size > limit:
            raise PayloadTooLarge(
                f"a report has {size} bytes, and the server takes {limit}: store it elsewhere and pass a reference",
                field="result",
                size=size,
                limit=limit,
            )

    def _ask_from_thread(
        self, request: Report, answered: Callable[[pb.Answer], None], done: concurrent.futures.Future[Any]
    ) -> None:
        """From any thread; `done` is set in one of the session's."""
        raw: concurrent.futures.Future[pb.Answer] = concurrent.futures.Future()

        def pass_on(raw: concurrent.futures.Future[pb.Answer]) -> None:
            error = raw.exception()
            if error is not None:
                done.set_exception(error)
            else:
                answered(raw.result())

        raw.add_done_callback(pass_on)
        try:
            self._send(PendingRequest(raw, report_message(request, next(self._ids))))
        except HoldfastError as error:
            done.set_exception(error)

    async def _ask_briefly(self, make: Callable[[int], pb.Request]) -> None:
        """Ask, but do not wait for a server that is not there."""
        if not self.connected:
            return
        future: asyncio.Future[pb.Answer] = asyncio.get_running_loop().create_future()
        try:
            self._send(PendingRequest(future, make(next(self._ids))))
            async with asyncio.timeout(GOODBYE_S):
                await future
        except (TimeoutError, HoldfastError) as error:
            log.info("the server was not told: %r", error)

    def _send(self, pending: PendingRequest) -> None:
        link = self._link
        if link is None:
            raise (
                EngineStopped("this worker has ended") if self._stopped else Unavailable("there is no session just now")
            )
        self._pending[pending.message.id] = pending
        link.send(pending.message)

    # --- what comes (in a thread of the session) ---

    def arrived(self, message: pb.ServerMessage) -> None:
        found: list[wk.Work] = []
        for part in message.work:
            key = key_of(part)
            if key is not None:
                self._keep_key(*key)
            taken = work(part)
            if taken is not None:
                found.append(taken)
        answers: list[tuple[PendingRequest, pb.Answer]] = []
        for answer in message.answers:
            pending = self._pending.pop(answer.id, None)
            if pending is None:
                continue
            self._received_at = time.monotonic()
            if isinstance(pending.future, concurrent.futures.Future):
                pending.settle(answer)
            else:
                answers.append((pending, answer))
        if found or answers:
            self._call_loop(self._deliver, found, answers)

    def warned(self, session: SessionLink, within_s: float) -> None:
        self._call_loop(self._server_stopping, session, within_s)

    def lost(self, session: SessionLink, why: HoldfastError) -> None:
        self._call_loop(self._session_over, session, why)

    def _call_loop(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:  # the loop is closed: nobody is left who could be told
            log.debug("a message came after the end")

    def _keep_key(self, execution_id: str, key: bytes) -> None:
        self._keys.pop(execution_id, None)
        self._keys[execution_id] = key
        if len(self._keys) > KEPT_KEYS:
            self._keys.pop(next(iter(self._keys)), None)

    # --- and on the event loop ---

    def _deliver(self, found: list[wk.Work], answers: list[tuple[PendingRequest, pb.Answer]]) -> None:
        """Work first: news may be older than an answer that came with them, never the other way round."""
        for given in found:
            self._note(given)
        if found:
            self._post.extend(found)
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(self._post)
                self._post = []
                self._waiter = None
        for pending, answer in answers:
            self._note_answer(pending.about, answer)
            pending.settle(answer)
        self._depart_if_free()

    def _note(self, work: wk.Work) -> None:
        match work:
            case wk.TurnWork():
                self._turns[work.execution_id] = work.token
            case wk.TaskWork():
                self._tasks[work.execution_id, work.task_no, work.token.epoch] = work.token
            case wk.LostTurn():
                held = self._turns.get(work.execution_id)
                if held is not None and held.epoch <= work.epoch:
                    del self._turns[work.execution_id]

    def _note_answer(self, about: About | None, answer: pb.Answer) -> None:
        if about is None:
            return
        if is_attempt(about):
            if not isinstance(error_of_answer(answer), Unavailable):
                self._tasks.pop(cast(Attempt, about), None)
        elif not answer.HasField("turn") or answer.turn.released or answer.turn.closed:
            self._drop_turn(*cast(tuple[str, Token], about))

    def _drop_turn(self, execution_id: str, token: Token) -> None:
        # The next lease may have come before the answer that ended this one.
        if self._turns.get(execution_id) == token:
            del self._turns[execution_id]

    def _fail_all(self, error: HoldfastError) -> None:
        """Nobody will answer. Reports on tasks are kept for the next session."""
        pending, self._pending = self._pending, {}
        for one in list(pending.values()):  # a heartbeat may come from its own thread this moment
            if one.future.done() or (is_attempt(one.about) and not self._stopped):
                continue
            # Whether a turn was recorded is not known: only its history can tell.
            unknown = StaleClaim("the session is over; whether the turn was recorded is not known")
            one.future.set_exception(error if one.about is None or is_attempt(one.about) else unknown)

    # --- histories ---

    async def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None
    ) -> list[HistoryEvent]:
        found: list[HistoryEvent] = []
        while limit is None or len(found) < limit:
            size = HISTORY_PAGE if limit is None else min(HISTORY_PAGE, limit - len(found))
            page = await self._history_page(
                pb.GetHistoryRequest(org_id=org, workflow_execution_id=execution_id, after=after, limit=size)
            )
            found.extend(event(message) for message in page.events)
            if not page.more or not page.events:
                break
            after = found[-1].seq
        return found

    async def _history_page(self, request: pb.GetHistoryRequest) -> pb.GetHistoryResponse:
        link = self._link
        if link is None or link.channel is None:
            raise Unavailable("there is no session just now")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[pb.GetHistoryResponse] = loop.create_future()
        try:
            read = link.channel.unary_unary(
                HISTORY, pb.GetHistoryRequest.SerializeToString, pb.GetHistoryResponse.FromString
            )
            call = read.future(request, timeout=CALL_LIMIT_S, metadata=self._metadata)
        except ValueError as error:  # the channel was closed this moment
            raise Unavailable("there is no session just now") from error
        call.add_done_callback(lambda call: self._call_loop(_page_read, done, call))
        return await done


def _page_read(done: asyncio.Future[pb.GetHistoryResponse], call: Any) -> None:
    if done.done():
        return
    if call.cancelled():
        done.set_exception(ServerUnreachable("the stream to the server has ended"))
        return
    error = call.exception()
    if error is None:
        done.set_result(call.result())
    else:
        done.set_exception(error_of(error) if isinstance(error, grpc.RpcError) else ServerUnreachable(str(error)))
