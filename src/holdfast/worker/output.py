"""What the bodies of tasks say, until the engine has it.

A chunk stays here until a heartbeat that carried it was answered, or until the attempt's report carries it: it is
numbered, so that it counts once however often it is sent. What waits is bounded by the limits of the engine; a body
that says more than can be passed on loses the oldest, and the numbers tell how many. Callable from any thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from holdfast.contract.workers import OutputChunk, OutputLimits, TaskBeat, TaskWork
from holdfast.model.values import Payload, Token

FLUSH_S: Final = 0.1
FLUSH_CHUNKS: Final = 64
FLUSH_BYTES: Final = 64 * 1024
WAITING_BYTES: Final = 4 * 1024 * 1024
"""Of one attempt. More than this is never sent at once, and never kept."""
AGAIN_S: Final = 0.5

AttemptKey = tuple[str, int, Token]


class _SentOutput:
    """What one attempt has said and nobody has confirmed."""

    __slots__ = ("chunks", "last", "size")

    def __init__(self, last: int) -> None:
        self.last = last
        self.size = 0
        self.chunks: deque[OutputChunk] = deque()

    def add(self, data: Payload, most: int) -> None:
        self.last += 1
        self.chunks.append(OutputChunk(self.last, data))
        self.size += len(memoryview(data))
        while len(self.chunks) > most or (self.size > WAITING_BYTES and len(self.chunks) > 1):
            self._drop()

    def confirm(self, seq: int) -> None:
        while self.chunks and self.chunks[0].seq <= seq:
            self._drop()

    def _drop(self) -> None:
        self.size -= len(memoryview(self.chunks.popleft().data))


class Outputs:
    """The output of all attempts of one worker. `wake` is called when it is time to look at `due_in_s` again."""

    def __init__(self, limits: Callable[[], OutputLimits]) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._limits = limits
        self._lock = threading.Lock()
        self._sent: dict[AttemptKey, _SentOutput] = {}
        self._due_at: float | None = None
        self._unsent = 0
        self._unsent_bytes = 0

    @property
    def chunk_bytes(self) -> int:
        return self._limits().chunk_bytes

    def add(self, work: TaskWork, data: Payload) -> None:
        most = self._limits().chunks
        with self._lock:
            sent = self._sent.get(_key(work))
            if sent is None:
                sent = self._sent[_key(work)] = _SentOutput(work.output_seq)
            sent.add(data, most)
            due_before = self._due_at
            self._unsent += 1
            self._unsent_bytes += len(memoryview(data))
            now = time.monotonic()
            if due_before is None:
                self._due_at = now + FLUSH_S
            if self._unsent >= FLUSH_CHUNKS or self._unsent_bytes >= FLUSH_BYTES:
                self._due_at = now
                self._unsent = self._unsent_bytes = 0
                due_before = None
        if due_before is None:
            self.wake()

    def due_in_s(self) -> float | None:
        """When something is to be sent; None while nothing waits."""
        due_at = self._due_at
        return None if due_at is None else due_at - time.monotonic()

    def take(self) -> dict[AttemptKey, tuple[OutputChunk, ...]]:
        """All that is not confirmed, to be sent now."""
        with self._lock:
            self._due_at = None
            self._unsent = self._unsent_bytes = 0
            return {key: tuple(sent.chunks) for key, sent in self._sent.items() if sent.chunks}

    def confirm(self, beats: Iterable[TaskBeat]) -> None:
        """The engine has taken these, or wants nothing more of their attempts."""
        with self._lock:
            for beat in beats:
                sent = self._sent.get((beat.execution_id, beat.task_no, beat.token)) if beat.output else None
                if sent is not None:
                    sent.confirm(beat.output[-1].seq)

    def send_again(self, beats: Iterable[TaskBeat]) -> None:
        """Nobody has answered."""
        with self._lock:
            if self._due_at is None and any(beat.output for beat in beats):
                self._due_at = time.monotonic() + AGAIN_S

    def finish(self, work: TaskWork) -> tuple[OutputChunk, ...]:
        """What the report of the attempt has to carry. Nothing is kept of it."""
        if not self._sent:
            return ()
        with self._lock:
            sent = self._sent.pop(_key(work), None)
        return () if sent is None else tuple(sent.chunks)


def _key(work: TaskWork) -> AttemptKey:
    return work.execution_id, work.task_no, work.token
