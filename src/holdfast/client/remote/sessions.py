"""A worker's session on the worker's side: one stream at a time, opened again when it breaks.

    any thread ─► requests ─┐                                   ┌─► work, on the event loop
                            ├─► messages ─► stream ─► messages ─┤
    kept until the server has them ─┘                           └─► answers, to whoever waits

Threads of its own send and receive, so that a busy event loop costs no heartbeat. A broken stream is opened again at
the same server, and both sides send what the other has not got: nothing is reported twice, nothing is lost. If that
server does not come back, or knows the session no more, the session is over.
"""

from __future__ import annotations

import concurrent.futures
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import grpc
from google.protobuf.message import DecodeError

from holdfast.client.remote.channels import error_of
from holdfast.errors import HoldfastError, InvalidRequest, ServerUnreachable, SessionLost, Unavailable
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc.failures import error as error_in
from holdfast.transport.grpc.sessions import Parts, in_parts

log = logging.getLogger("holdfast.client.remote")

SESSION = "/holdfast.v1.WorkerService/WorkerSession"
MESSAGE_BYTES = 1024 * 1024
LARGEST_WHOLE = 512 * 1024 * 1024
OPEN_WITHIN_S = 10.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
ACKNOWLEDGE_EVERY = 64
GATHER_S = 0.001


class Listener(Protocol):
    """Who is told what comes. Called in a thread of the session."""

    def arrived(self, message: pb.ServerMessage) -> None: ...

    def warned(self, session: SessionLink, within_s: float) -> None: ...

    def lost(self, session: SessionLink, why: HoldfastError) -> None: ...


class _Stream:
    """One stream. `over` tells its sender to stop."""

    def __init__(self) -> None:
        self.over = False
        self.opened = False
        self.call: Any = None


class SessionLink:
    """See the module's text. `connect` opens a channel to the server that has the session; `wait_s` is how long it
    is tried to come back to it."""

    def __init__(
        self,
        opening: pb.OpenSession,
        listener: Listener,
        connect: Callable[[], Any],
        *,
        metadata: list[tuple[str, str]],
        wait_s: float,
    ) -> None:
        self._opening = opening
        self._listener = listener
        self._connect = connect
        self._metadata = metadata
        self._wait_s = wait_s
        self._lock = threading.Condition()
        self._unsent: deque[pb.Request] = deque()
        self._kept: deque[pb.WorkerMessage] = deque()
        self._number = 0
        self._received = 0
        self._acknowledged = 0
        self._stream: _Stream | None = None
        self._closed = threading.Event()
        self._part_bytes = MESSAGE_BYTES
        self.channel: Any = None
        self.ready: concurrent.futures.Future[pb.SessionOpened] = concurrent.futures.Future()
        self.opened: pb.SessionOpened | None = None
        self.connected = False
        self.leaving = False
        """The worker has said goodbye: the end of the stream is what it waits for."""
        self._departing = False
        self._thread = threading.Thread(target=self._run, name="holdfast-remote", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self, request: pb.Request) -> None:
        """From any thread."""
        with self._lock:
            self._unsent.append(request)
            # Whoever sends looks again before it waits: one call is enough for many requests.
            if len(self._unsent) == 1:
                self._lock.notify_all()

    def close(self) -> None:
        """Nothing more is sent or told. From any thread."""
        self._closed.set()
        self._break_off()

    def depart(self) -> None:
        """The server goes, and there is another one: end the stream, which is the end of the session here."""
        self._departing = True
        self._break_off()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def suspect(self) -> None:
        """The server has been silent for too long: try another stream."""
        self._break_off()

    def _break_off(self) -> None:
        stream = self._stream
        if stream is not None and stream.call is not None:
            stream.call.cancel()

    # --- receiving ---

    def _run(self) -> None:
        lost_at, pause_s = time.monotonic(), FIRST_PAUSE_S
        while not self._closed.is_set():
            ended, opened = self._one_stream()
            self.connected = False
            if self._closed.is_set() or self.leaving:
                break
            if self._departing:
                self._give_up(SessionLost("the server is about to stop"))
                return
            if opened:
                lost_at, pause_s = time.monotonic(), FIRST_PAUSE_S
                log.warning("the stream to the server has ended, trying again: %s", ended)
            if not self._worth_a_try(ended) or time.monotonic() - lost_at > self._wait_s:
                self._give_up(ended)
                return
            # Drawn from the whole: workers that lost their server together must not come back together.
            self._closed.wait(random.uniform(FIRST_PAUSE_S / 2, pause_s))  # noqa: S311 - no secret
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        self._drop_channel()
        if not self.ready.done():
            self.ready.set_exception(ServerUnreachable("this worker has ended"))

    def _worth_a_try(self, ended: HoldfastError) -> bool:
        """A session that was never open is begun anew by whoever wanted it."""
        return self.opened is not None and isinstance(ended, Unavailable)

    def _give_up(self, why: HoldfastError) -> None:
        self._drop_channel()
        if not self.ready.done():
            self.ready.set_exception(why)
        else:
            self._listener.lost(self, why)

    def _drop_channel(self) -> None:
        if self.channel is not None:
            self.channel.close()

    def _one_stream(self) -> tuple[HoldfastError, bool]:
        """Open a stream and read it to its end: why it has ended, and whether it was open at all."""
        stream = _Stream()
        self._drop_channel()
        self.channel = self._connect()
        parts = Parts(LARGEST_WHOLE)
        watchdog = None
        try:
            start = self.channel.stream_stream(SESSION, pb.WorkerMessage.SerializeToString, pb.ServerMessage.FromString)
            self._stream = stream
            stream.call = start(self._outgoing(stream), metadata=self._metadata)
            watchdog = threading.Timer(OPEN_WITHIN_S, lambda: stream.opened or stream.call.cancel())
            watchdog.daemon = True
            watchdog.start()
            for message in stream.call:
                whole = parts.take(message)
                if whole is None:
                    continue
                if whole.HasField("ended"):
                    return SessionLost(error_in(whole.ended).message), stream.opened
                self._take(stream, whole)
            return ServerUnreachable("the server has ended the stream"), stream.opened
        except grpc.RpcError as error:
            return error_of(error), stream.opened
        except (InvalidRequest, DecodeError) as error:
            return SessionLost(f"the server has sent what can't be read: {error}"), stream.opened
        finally:
            if watchdog is not None:
                watchdog.cancel()
            with self._lock:
                stream.over = True
                self._lock.notify_all()
            if stream.call is not None:
                stream.call.cancel()

    def _take(self, stream: _Stream, message: pb.ServerMessage) -> None:
        if message.HasField("opened"):
            self._start(stream, message)
            return
        if message.HasField("leaving"):
            self._listener.warned(self, message.leaving.within_seconds)
            return
        with self._lock:
            self._acknowledge(message.received)
            if message.number <= self._received:
                return
            if message.number != self._received + 1:
                raise InvalidRequest(f"message {message.number} came after {self._received}")
            self._received = message.number
            if self._received - self._acknowledged >= ACKNOWLEDGE_EVERY:
                self._lock.notify_all()
        self._listener.arrived(message)

    def _start(self, stream: _Stream, message: pb.ServerMessage) -> None:
        with self._lock:
            self.opened = opened = message.opened
            self._part_bytes = max(int(opened.max_message_bytes) // 2, 1024)
            # From now on: go on with this session.
            resuming = pb.OpenSession(org_id=self._opening.org_id, session=opened.session, resume=opened.proof)
            self._opening = resuming
            self._acknowledge(message.received)
            stream.opened = self.connected = True
            self._lock.notify_all()
        if not self.ready.done():
            self.ready.set_result(opened)

    def _acknowledge(self, received: int) -> None:
        while self._kept and self._kept[0].number <= received:
            self._kept.popleft()

    # --- sending ---

    def _outgoing(self, stream: _Stream) -> Iterator[pb.WorkerMessage]:
        """What grpc sends, in a thread of its own: it asks for the next message when the last one is on its way, and
        what has come meanwhile goes together."""
        yield from in_parts(pb.WorkerMessage(open=self._opening, received=self._received), self._part_bytes)
        with self._lock:
            self._lock.wait_for(lambda: stream.opened or stream.over)
            again = list(self._kept)
        for message in again:
            if stream.over:
                return
            yield from in_parts(message, self._part_bytes)
        while (fresh := self._next_message(stream)) is not None:
            yield from in_parts(fresh, self._part_bytes)
            # What comes right after goes together: a message costs as much as many requests in it.
            time.sleep(GATHER_S)

    def _next_message(self, stream: _Stream) -> pb.WorkerMessage | None:
        with self._lock:
            self._lock.wait_for(
                lambda: stream.over or self._unsent or self._received - self._acknowledged >= ACKNOWLEDGE_EVERY
            )
            if stream.over:
                return None
            self._acknowledged = self._received
            message = pb.WorkerMessage(received=self._received)
            size = 0
            while self._unsent and size < MESSAGE_BYTES:
                request = self._unsent.popleft()
                size += request.ByteSize()
                message.requests.append(request)
            if message.requests:
                self._number += 1
                message.number = self._number
                self._kept.append(message)
            return message
