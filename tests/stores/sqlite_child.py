"""A process of its own for the tests: opens a store on a file and does one thing there.

python sqlite_child.py count PATH TIMES      raise a counter TIMES times, one transaction each
python sqlite_child.py append PATH           append events for ever, print each acknowledged number
python sqlite_child.py fill PATH BYTES       write until files may not grow beyond BYTES, then on without the limit
"""

import asyncio
import resource
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from holdfast.config import StoreConfig
from holdfast.errors import StorageFull
from holdfast.model.events import HistoryEvent, SignalReceived
from holdfast.store.protocol import BatchSource, Changes, Clock, Loaded, LoadPlan, Store
from holdfast.store.sqlite.store import SqliteStore
from verification.stores import Bench
from verification.stores.records import ORG, an_execution, an_id

PLAN = LoadPlan(executions={an_id(1)})
# Small, so that checkpoints are part of everything that is tried.
CONFIG = StoreConfig(checkpoint_wal_bytes=128 * 1024)


async def open_bench(path: str) -> Bench:
    async def open_(_: Clock, source: BatchSource) -> Store:
        store = SqliteStore(Path(path), CONFIG, lambda: time.time_ns() // 1000)
        await store.open(source)
        return store

    return await Bench.opened(open_)


def next_event(loaded: Loaded) -> Changes:
    """Another event of the execution, which is made if it does not exist."""
    found = loaded.executions.get(an_id(1))
    new = [] if found is not None else [an_execution()]
    execution = found or new[0]
    execution.last_seq += 1
    event = HistoryEvent(execution.last_seq, loaded.now, SignalReceived(signal_name="x" * 200))
    changed = {} if new else {execution.id: execution}
    return Changes(new_executions=new, changed_executions=changed, events=[(execution.id, event)])


async def last_seq(bench: Bench) -> int:
    found = await bench.store.executions(ORG, [an_id(1)])
    return found[an_id(1)].last_seq if found else 0


async def count(bench: Bench, times: int) -> None:
    for _ in range(times):
        await bench.run(PLAN, next_event)


async def append(bench: Bench) -> None:
    async def forever() -> None:
        while True:
            written: list[int] = []

            def decide(loaded: Loaded, written: list[int] = written) -> Changes:
                changes = next_event(loaded)
                # Noted here: the record is lent, and the next batch may be changing it when this one is answered.
                written[:] = [event.seq for _, event in changes.events]
                return changes

            await bench.run(PLAN, decide)
            print(*written, flush=True)

    await asyncio.gather(*(forever() for _ in range(4)))


async def fill(bench: Bench, limit: int) -> None:
    acknowledged = refused = 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    while refused < 5:
        try:
            await bench.run(PLAN, next_event)
            acknowledged += 1
        except StorageFull as error:
            refused += isinstance(error.__cause__, sqlite3.Error)
            assert await last_seq(bench) == acknowledged, "reads go on and see what was acknowledged"
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for _ in range(10):
        await bench.run(PLAN, next_event)
    print(acknowledged + 10)


async def main(what: str, path: str, *numbers: str) -> None:
    bench = await open_bench(path)
    works: dict[str, Callable[..., Awaitable[None]]] = {"count": count, "append": append, "fill": fill}
    await works[what](bench, *map(int, numbers))
    await bench.store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
