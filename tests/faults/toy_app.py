"""A worker of toy programs in a process of its own: `python -m tests.faults.toy_app work OPTIONS`.

It keeps no program in memory, so that every turn begins with a snapshot that perhaps another process has stored.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any

from holdfast import Engine, EngineConfig, StoreConfig, WorkerConfig
from tests.unit.frontends.toy.programs import BUSY, COUNT, HALVES, double


async def work(options: dict[str, Any]) -> None:
    worker = WorkerConfig(lease_s=0.5, shutdown_grace_s=0.2, cached_executions=options["cached"])
    config = EngineConfig(store=StoreConfig(synchronous="normal"), worker=worker, crash_attempts=1_000)
    async with Engine(options["db"], workflows=[BUSY, COUNT, HALVES], tasks=[double], config=config):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(work(json.loads(sys.argv[2])))
