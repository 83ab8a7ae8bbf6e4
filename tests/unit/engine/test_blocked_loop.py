"""A body that blocks the event loop on PostgreSQL, where the writer runs on that loop: the lease is kept without it."""

import threading
import time
from contextlib import closing

import psycopg
import pytest

from holdfast import EngineConfig, StoreConfig, WorkerConfig, WorkflowContext, workflow
from tests.conftest import SECRET

LEASE_S = 2.0
ALIVE = "SELECT lease_until_at > extract(epoch FROM clock_timestamp()) * 1000000 FROM holdfast_workers"


@workflow
async def blocks(ctx: WorkflowContext) -> str:
    async def hold_up() -> str:
        time.sleep(2.5 * LEASE_S)
        return "done"

    return await ctx.run(hold_up)


class Witness(threading.Thread):
    """Looks at the lease as any other node would, as long as it is told to."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.seen: list[bool] = []
        self.enough = threading.Event()
        self._url = url

    def run(self) -> None:
        with closing(psycopg.connect(self._url, autocommit=True)) as connection:
            while not self.enough.wait(0.05):
                self.seen += [alive for (alive,) in connection.execute(ALIVE)]


@pytest.mark.slow
async def test_a_blocked_loop_does_not_cost_the_lease(postgres_url, engine):
    """However long it says nothing, no other node finds a session to take back."""
    config = EngineConfig(
        store=StoreConfig(), worker=WorkerConfig(lease_s=LEASE_S, shutdown_grace_s=0.2), secret_key=SECRET
    )
    node = await engine(url=postgres_url, workflows=[blocks], config=config)
    witness = Witness(postgres_url)
    witness.start()

    handle = await node.client.start_workflow(blocks)

    assert await handle.result() == "done"
    witness.enough.set()
    witness.join()
    assert witness.seen
    assert all(witness.seen)
