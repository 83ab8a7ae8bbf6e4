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
from holdfast.model.tokens import execution_key
from holdfast.replay.definition import ProgramEnvironment
from holdfast.replay.registry import Registry
from holdfast.telemetry.traces import Tracing
from holdfast.worker.threads import BodyThreads

log = logging.getLogger("holdfast.worker")

REPLAY_ALWAYS = "HOLDFAST_REPLAY_ALWAYS"
"""The environment variable that turns `WorkerConfig.replay_always` on for a whole process."""


class Host:
    """The worker's surroundings: where it reports, whose work it does, which clock it reads, how it waits.

    The testing kit puts virtual time in the place of `sleep`, and bodies of its own in the place of users'.
    """

    BEATS_BY_ITSELF: ClassVar[bool] = True
    """Whether the pulse reports by the wall clock; without, somebody else passes heartbeats on."""

    __slots__ = (
        "config",
        "context",
        "draining",
        "gone",
        "held",
        "loop",
        "nothing_held",
        "now",
        "org",
        "registry",
        "replay_always",
        "rested",
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
        self.threads: BodyThreads
        self.gone: Callable[[str], None]
        """To be called when nothing is left of an execution here."""
        self.rested: Callable[[], None]
        """To be called when an execution has gone back to waiting: its program may be one too many to keep."""

    def token_key(self, execution_id: str) -> bytes:
        """What the tokens of an execution's promises are made from."""
        return execution_key(self.secret, self.org, execution_id)

    def environment(self, execution_id: str) -> ProgramEnvironment:
        return ProgramEnvironment(self.org, execution_id, self.token_key, self.config.propagate_child_failures)

    def gave_back(self) -> None:
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
