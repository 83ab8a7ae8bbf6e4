"""Which process runs an execution, where several share a database: the one that has its program already."""

import pytest

from holdfast import WorkflowContext, workflow
from holdfast.engine import dispatcher
from holdfast.model.events import TurnCompleted
from tests.conftest import until

LONG = 20


@pytest.fixture(autouse=True)
def short_is_long(monkeypatch):
    """What counts as a long history, and how long it is left to others."""
    monkeypatch.setattr(dispatcher, "LONG_HISTORY", LONG)
    monkeypatch.setattr(dispatcher, "STICKY_US", 10_000_000)


@workflow
async def listens(ctx: WorkflowContext) -> int:
    heard = 0
    while await ctx.wait_for_signal("word", str) != "end":
        heard += 1
    return heard


async def workers_of(handle) -> list[str]:
    return [event.body.worker for event in await handle.history() if isinstance(event.body, TurnCompleted)]


async def grown(handle) -> None:
    """A history that is long enough to make rebuilding its program a waste."""
    for number in range(LONG):
        await handle.signal("word", str(number))


async def test_a_long_execution_stays_where_it_has_run(postgres_url, engine):
    """Whichever process a signal comes through, and although that one has a worker with nothing to do."""
    first = await engine(workflows=[listens], url=postgres_url)
    handle = await first.client.start_workflow(listens)
    await grown(handle)
    (runner,) = set(await workers_of(handle))
    second = await engine(workflows=[listens], url=postgres_url)
    await until(lambda: first.storage.has_peers and second.storage.has_peers)

    for number in range(5):
        before = len(await handle.history())
        await second.client.workflow(handle.id).signal("word", f"late {number}")

        async def has_heard(before: int = before) -> bool:
            return len(await handle.history()) >= before + 2

        await until(has_heard)
    await second.client.workflow(handle.id).signal("word", "end")

    assert await handle.result() == LONG + 5
    assert set(await workers_of(handle)) == {runner}


async def test_another_process_takes_over_when_the_first_is_gone(postgres_url, engine, monkeypatch):
    """It is left to somebody for a moment, not for ever."""
    monkeypatch.setattr(dispatcher, "STICKY_US", 100_000)
    first = await engine(workflows=[listens], url=postgres_url)
    handle = await first.client.start_workflow(listens)
    await grown(handle)
    second = await engine(workflows=[listens], url=postgres_url)
    await until(lambda: second.storage.has_peers)
    await first.shutdown()

    await second.client.workflow(handle.id).signal("word", "end")

    assert await second.client.workflow(handle.id).result() == LONG
