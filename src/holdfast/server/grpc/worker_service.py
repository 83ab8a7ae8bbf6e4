"""WorkerService: the streams of workers, and the sessions behind them.

A session belongs to this process. When its stream breaks it is paused and kept for as long as its lease: the worker
may come back. When the worker says goodbye, whatever it holds is free at once. A worker that was killed says nothing:
then the lease runs out, and the loss is counted, as anywhere else. A server that stops says so first and takes what its
workers still report; what they hold after that is free, but for the tasks, which go with them.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from functools import lru_cache, partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from msgspec import structs

from holdfast.contract import workers as wk
from holdfast.contract.keys import Principal
from holdfast.contract.workers import ReplaceSession
from holdfast.errors import HoldfastError, InvalidRequest, SessionLost, TooManyRequests, Unauthenticated, Unavailable
from holdfast.model.keys import Role
from holdfast.server.engine_api import EngineApi
from holdfast.server.grpc.calls import Call, Caller, Guard, Method, break_down, enter, read_message, refuse
from holdfast.server.grpc.histories import LARGEST_PAGE, history_page
from holdfast.server.grpc.sessions import WorkerSession
from holdfast.server.grpc.settings import GrpcSettings
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc.failures import error_message
from holdfast.transport.grpc.reports import read_attempt, report
from holdfast.transport.grpc.sessions import Parts, in_parts, register_request

log = logging.getLogger("holdfast.server.grpc")

WORKER_SERVICE = "holdfast.v1.WorkerService"
OPEN_WITHIN_S = 10.0
LINGER_S = 2.0
UNCONFIRMED_S = 5.0
GATHER_S = 0.001
"""A message costs as much as a hundred turns in it: under load, one in this time is enough."""
EXPIRED_S = 0.1
MOST_LEFT = 100_000
KEYS_AT_HAND = 2_000


class _Stream:
    """One stream of a session. A newer one takes its place."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.replaced = asyncio.Event()


class WorkerService:
    """All worker sessions of this process."""

    def __init__(
        self, engine_api: EngineApi, guard: Guard, settings: GrpcSettings, token_key: Callable[[str, str], bytes]
    ) -> None:
        self._workers = engine_api.workers
        self._upkeep = engine_api.upkeep
        self._guard = guard
        self._settings = settings
        self._token_key = token_key
        self._sessions: dict[str, WorkerSession] = {}
        self._streams: dict[str, _Stream] = {}
        self._expiries: dict[str, asyncio.TimerHandle] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._stopping = False

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def methods(self) -> tuple[Method, ...]:
        return (Method("ReadHistory", pb.GetHistoryRequest, pb.GetHistoryResponse, Role.WORKER, self.read_history),)

    async def read_history(self, call: Call, message: Any) -> pb.GetHistoryResponse:
        return await history_page(self._workers.history, call.org, message, LARGEST_PAGE)

    async def stop(self, grace_s: float) -> None:
        """Tell all workers, wait for their reports for so long, and send away who is left. Their turns are free for
        others then; tasks go on where they run, and belong to the session that the worker opens elsewhere, if it does
        so before its lease is over."""
        self._stopping = True
        await self._await_reports(grace_s)
        sessions = list(self._sessions.values())
        for session, outcome in zip(
            sessions, await asyncio.gather(*(found.finish() for found in sessions), return_exceptions=True), strict=True
        ):
            if outcome is not None:
                log.warning("what session %s held was not handed over: %r", session.id, outcome)
        await asyncio.gather(*self._background, return_exceptions=True)
        for session in list(self._sessions.values()):
            self._forget(session)

    async def _await_reports(self, grace_s: float) -> None:
        """Nothing comes from a session without a stream."""
        listening = [session for session in self._sessions.values() if session.id in self._streams]
        if not listening:
            return
        await asyncio.gather(*(session.announce(grace_s) for session in listening))
        quiet = [asyncio.ensure_future(session.quiet.wait()) for session in listening]
        _, late = await asyncio.wait(quiet, timeout=grace_s)
        for waiting in late:
            waiting.cancel()
        if late:
            log.warning("%d workers have not reported all that they hold within %g s", len(late), grace_s)

    # --- streams ---

    async def session(self, requests: AsyncIterator[bytes], context: Any) -> None:
        """One stream, from its opening to its end."""
        try:
            principal = await Caller(context).identify(self._guard)
            await self._serve(principal, requests, context)
        except HoldfastError as error:
            await refuse(context, error)
        except (asyncio.CancelledError, grpc.aio.AbortError):
            raise
        except Exception as error:  # noqa: BLE001 - the worker must not see it, the log must
            await break_down(context, "a worker's stream", error)

    async def _serve(self, principal: Principal, requests: AsyncIterator[bytes], context: Any) -> None:
        parts = Parts(self._settings.max_whole_bytes)
        try:
            async with asyncio.timeout(OPEN_WITHIN_S):
                first = await _next(requests, parts)
        except TimeoutError as error:
            raise InvalidRequest("the stream was not opened in time", field="open") from error
        if first is None:
            return
        if not first.HasField("open"):
            raise InvalidRequest("the first message of a stream must open a session", field="open")
        org = enter(principal, Role.WORKER, first.open.org_id)
        session = await self._open(first.open, org, first.received)
        stream = self._attach(session, context)
        jobs = [
            asyncio.ensure_future(self._read(session, requests, parts)),
            asyncio.ensure_future(self._write(session, stream, resumed=bool(first.open.resume))),
            asyncio.ensure_future(self._watch(principal)),
            asyncio.ensure_future(_linger(session)),
        ]
        try:
            done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            for job in done:
                job.result()
        finally:
            for job in jobs:
                job.cancel()
            try:
                # A worker that breaks off ends its requests first and cancels this call then: here, most likely.
                await asyncio.gather(*jobs, return_exceptions=True)
            finally:
                self._detach(session, stream)

    async def _read(self, session: WorkerSession, requests: AsyncIterator[bytes], parts: Parts) -> None:
        while True:
            message = await _next(requests, parts)
            if message is None:
                if session.closing:
                    # It has said goodbye: the answer to that is still to be sent.
                    await session.over.wait()
                    await asyncio.sleep(LINGER_S)
                return
            if message.HasField("open"):
                raise InvalidRequest("the session is open already", field="open")
            session.take(message)
            await session.room.wait()

    async def _write(self, session: WorkerSession, stream: _Stream, *, resumed: bool) -> None:
        output = self._workers.output_limits()
        opened = pb.SessionOpened(
            session=session.id,
            org_id=session.org,
            proof=session.proof,
            resumed=resumed,
            now=self._upkeep.now(),
            max_message_bytes=self._settings.max_message_bytes,
            max_whole_bytes=self._settings.max_whole_bytes,
            max_output_bytes=output.chunk_bytes,
            max_output_chunks=output.chunks,
        )
        await self._send(stream, pb.ServerMessage(opened=opened, received=session.received))
        loop, sent_at, told = asyncio.get_running_loop(), 0.0, False
        while not stream.replaced.is_set():
            await session.wake.wait()
            session.wake.clear()
            if stream.replaced.is_set():
                session.wake.set()
                return
            # Let everything that is ready now get into the same message, and what comes right after the last one.
            await asyncio.sleep(max(sent_at + GATHER_S - loop.time(), 0))
            while (message := session.next_message()) is not None:
                await self._send(stream, message)
            sent_at = loop.time()
            if session.leaving_within_s is not None and not told:
                told = True
                leaving = pb.Leaving(within_seconds=session.leaving_within_s)
                await self._send(stream, pb.ServerMessage(leaving=leaving, received=session.received))
            if session.ended:
                if session.farewell is not None:
                    await self._send(stream, pb.ServerMessage(ended=error_message(session.farewell)))
                return

    async def _send(self, stream: _Stream, message: pb.ServerMessage) -> None:
        for part in in_parts(message, self._settings.max_message_bytes // 2):
            await stream.context.write(part.SerializeToString())

    async def _watch(self, principal: Principal) -> None:
        """Ends the stream soon after its key has ended."""
        while True:
            await asyncio.sleep(self._settings.check_again_s)
            try:
                await self._guard.check_again(principal)
            except Unauthenticated:
                raise
            except HoldfastError as error:
                log.warning("a worker's key could not be checked: %s", error)

    # --- sessions ---

    async def _open(self, message: pb.OpenSession, org: str, received: int) -> WorkerSession:
        if self._stopping:
            raise Unavailable("the server is going away")
        if len(self._sessions) >= self._settings.max_sessions and not message.resume:
            raise TooManyRequests(f"this server has {len(self._sessions)} workers, and takes no more")
        if message.resume:
            return self._resume(message, org, received)
        # The name is ours: nobody can take the place of another session by calling itself like it.
        name = f"{message.host}-{message.pid}-{secrets.token_hex(6)}"
        request = register_request(message, org, name)
        if message.replaces:
            self._check_previous(message, org)
            await asyncio.gather(
                *(self._settle(request, org, message.replaces) for request in message.leftovers),
                return_exceptions=True,
            )
        running = tuple(read_attempt(found) for found in message.running)
        # What it runs already needs a slot, until it is reported.
        free = max(request.task_slots - len(running), 0)
        # Short until the worker has said that it knows of the session: nobody else could end it before its time.
        lease_s = min(request.lease_s, UNCONFIRMED_S)
        await self._workers.register(structs.replace(request, task_slots=free, lease_s=lease_s))
        session = WorkerSession(
            self._workers,
            request,
            proof=self._proof(org, name),
            token_key=lru_cache(KEYS_AT_HAND)(partial(self._token_key, org)),
            unread_bytes=self._settings.unread_bytes,
        )
        self._sessions[name] = session
        if message.replaces:
            kept = await self._workers.replace(
                ReplaceSession(org=org, session=message.replaces, by=name, running=running)
            )
            self._end_previous(message.replaces)
            session.take_over(running, kept)
        session.start()
        return session

    def _resume(self, message: pb.OpenSession, org: str, received: int) -> WorkerSession:
        session = self._sessions.get(message.session)
        genuine = hmac.compare_digest(message.resume, self._proof(org, message.session))
        if session is None or session.org != org or session.ended or not genuine:
            raise SessionLost("this server does not know the session: open a new one")
        session.attach(received)
        return session

    def _check_previous(self, message: pb.OpenSession, org: str) -> None:
        """A session that was open with another process, or was lost by this one, is about to end."""
        if not hmac.compare_digest(message.replaces_proof, self._proof(org, message.replaces)):
            raise InvalidRequest("this is not the proof of the session to be replaced", field="replaces_proof")
        for field in ("leftovers", "running"):
            if len(getattr(message, field)) > MOST_LEFT:
                raise InvalidRequest(f"{field} are more than {MOST_LEFT}", field=field)

    def _end_previous(self, name: str) -> None:
        previous = self._sessions.get(name)
        if previous is not None:
            previous.end(SessionLost("another session has taken its place"))
            if name not in self._streams:
                self._forget(previous)

    async def _settle(self, request: pb.Request, org: str, session: str) -> None:
        match report(request, org, session):
            case wk.CompleteTask() as found:
                await self._workers.complete_task(found)
            case wk.FailTask() as found:
                await self._workers.fail_task(found)
            case wk.DeferTask() as found:
                await self._workers.defer_task(found)

    def _proof(self, org: str, session: str) -> bytes:
        """Whoever shows this was told so by a server of this installation. An execution's id has no slash."""
        return self._token_key(org, f"session/{session}")

    def _attach(self, session: WorkerSession, context: Any) -> _Stream:
        stream = _Stream(context)
        previous = self._streams.get(session.id)
        self._streams[session.id] = stream
        expiry = self._expiries.pop(session.id, None)
        if expiry is not None:
            expiry.cancel()
        if previous is not None:
            previous.replaced.set()
        session.wake.set()
        if not session.paused:
            self._spawn(self._workers.resume(session.id))
        return stream

    def _detach(self, session: WorkerSession, stream: _Stream) -> None:
        if self._streams.get(session.id) is not stream:
            return
        del self._streams[session.id]
        if session.ended:
            self._spawn(self._workers.abandon(session.id))
            self._forget(session)
            return
        if self._stopping:
            self._spawn(self._release_turn(session))
            return
        self._spawn(self._workers.pause(session.id))
        loop = asyncio.get_running_loop()
        self._expiries[session.id] = loop.call_later(session.lease_s + EXPIRED_S, self._expired, session)

    async def _release_turn(self, session: WorkerSession) -> None:
        """Its worker has gone elsewhere, or can't come back to a server that stops."""
        try:
            await session.finish()
        finally:
            await self._workers.abandon(session.id)
            self._forget(session)

    def _expired(self, session: WorkerSession) -> None:
        self._expiries.pop(session.id, None)
        self._spawn(self._give_up(session))

    async def _give_up(self, session: WorkerSession) -> None:
        """The lease has run out, and what the session held is taken back like that of any worker that is gone. If a
        server elsewhere has ended the session, only we still know it."""
        await self._upkeep.run_due()
        if session.id in self._streams:
            return  # it came back in the last moment; if it was too late, it is told so
        await self._workers.abandon(session.id)
        self._forget(session)

    def _forget(self, session: WorkerSession) -> None:
        session.stop()
        self._sessions.pop(session.id, None)
        expiry = self._expiries.pop(session.id, None)
        if expiry is not None:
            expiry.cancel()

    def _spawn(self, work: Any) -> None:
        async def run() -> None:
            try:
                await work
            except HoldfastError as error:
                log.warning("a worker's session: %s", error)

        task = asyncio.get_running_loop().create_task(run())
        self._background.add(task)
        task.add_done_callback(self._background.discard)


async def _linger(session: WorkerSession) -> None:
    """A session that is over has a moment to tell its worker, who may not be listening."""
    await session.over.wait()
    await asyncio.sleep(LINGER_S)


async def _next(requests: AsyncIterator[bytes], parts: Parts) -> pb.WorkerMessage | None:
    """The next whole message; None at the end of the stream."""
    async for data in requests:
        try:
            whole: pb.WorkerMessage | None = parts.take(read_message(pb.WorkerMessage, data))
        except DecodeError as error:
            raise InvalidRequest("the parts do not make up a message", field="part") from error
        if whole is not None:
            return whole
    return None
