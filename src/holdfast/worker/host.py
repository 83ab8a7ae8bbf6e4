"""What the parts of a worker share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from holdfast.config import WorkerConfig
from holdfast.contract.workers import Workers
from holdfast.frontends.python.definitions import Registry
from holdfast.replay.machine import Machine, Program

log = logging.getLogger("holdfast.worker")

ProgramMaker = Callable[[Machine], Program]


class Host:
    """The worker's surroundings: where it reports, whose work it does, which clock it reads."""

    __slots__ = ("config", "draining", "loop", "now", "org", "registry", "session", "threads", "workers")

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
        self.loop: asyncio.AbstractEventLoop
        self.threads: ThreadPoolExecutor
