"""What the parts of a worker share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from holdfast.config import WorkerConfig
from holdfast.contract.workers import Workers
from holdfast.frontends.python.definitions import Registry
from holdfast.replay.machine import Machine, Program
from holdfast.worker.threads import BodyThreads

log = logging.getLogger("holdfast.worker")

ProgramMaker = Callable[[Machine], Program]


class Host:
    """The worker's surroundings: where it reports, whose work it does, which clock it reads."""

    __slots__ = (
        "config",
        "draining",
        "held",
        "loop",
        "nothing_held",
        "now",
        "org",
        "registry",
        "session",
        "threads",
        "workers",
    )

    def __init__(
        self, workers: Workers, org: str, registry: Registry, config: WorkerConfig, now: Callable[[], int]
    ) -> None:
        self.workers = workers
        self.org = org
        self.registry = registry
        self.config = config
        self.now = now
        self.session = ""
        self.draining = False
        self.held = 0
        self.nothing_held: asyncio.Event
        self.loop: asyncio.AbstractEventLoop
        self.threads: BodyThreads

    def took(self) -> None:
        """One more execution is leased to this worker."""
        self.held += 1

    def gave_back(self) -> None:
        self.held -= 1
        if not self.held and self.draining:
            self.nothing_held.set()
