"""What the parts of a worker share."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextvars import Context
from typing import Any, ClassVar

from holdfast.config import WorkerConfig
from holdfast.contract.workers import Workers
from holdfast.frontends.python.definitions import Registry
from holdfast.model.tokens import execution_key
from holdfast.replay.machine import Machine
from holdfast.replay.program import Program
from holdfast.telemetry.traces import Tracing
from holdfast.worker.threads import TaskThreads

log = logging.getLogger("holdfast.worker")

ProgramMaker = Callable[[Machine], Program]

REPLAY_ALWAYS = "HOLDFAST_REPLAY_ALWAYS"
"""The environment variable that turns `WorkerConfig.replay_always` on for a whole process."""


class WorkerRuntime:
    """The worker's surroundings: where it reports, whose work it does, which clock it reads, how it waits.

    The testing kit puts virtual time in the place of `sleep`, and bodies of its own in the place of users'.
    """

    SENDS_HEARTBEATS: ClassVar[bool] = True
    """Whether the pulse reports by the wall clock; without, somebody else passes heartbeats on."""

    __slots__ = (
        "config",
        "context",
        "draining",
        "held",
        "loop",
        "nothing_held",
        "now",
        "on_closed",
        "on_idle",
        "org",
        "registry",
        "replay_always",
        "secret",
        "session",
        "threads",
        "tracing",
        "workers",
    )

    def __init__(
        self,
        workers: Workers,
        org: str,
        registry: Registry,
        config: WorkerConfig,
        now: Callable[[], int],
        *,
        secret: bytes,
    ) -> None:
        self.workers = workers
        self.org = org
        self.registry = registry
        self.config = config
        self.now = now
        self.secret = secret
        self.tracing: Tracing | None = None
        self.session = ""
        self.replay_always = config.replay_always or os.environ.get(REPLAY_ALWAYS) == "1"
        self.draining = False
        self.held = 0
        self.nothing_held: asyncio.Event
        self.loop: asyncio.AbstractEventLoop
        self.context: Context
        """What bodies run in a copy of: the context in which the worker was started. Whoever wakes it (a commit, a
        thread, the body before) has another, or none."""
        self.threads: TaskThreads
        self.on_closed: Callable[[str], None]
        """To be called when nothing is left of an execution here."""
        self.on_idle: Callable[[], None]
        """To be called when an execution has gone back to waiting: its program may be one too many to keep."""

    def token_key(self, execution_id: str) -> bytes:
        """What the tokens of an execution's promises are made from."""
        return execution_key(self.secret, self.org, execution_id)

    def turn_released(self) -> None:
        """One execution less is leased to this worker."""
        self.held -= 1
        if not self.held and self.draining:
            self.nothing_held.set()

    async def sleep(self, seconds: float) -> None:
        """The pause before a step is tried again."""
        await asyncio.sleep(seconds)

    def step_body(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """What to call for a step of this function."""
        return fn
