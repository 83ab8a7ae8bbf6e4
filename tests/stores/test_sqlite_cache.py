import pytest
from msgspec import Raw

from holdfast import RetryPolicy, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.store.protocol import Changes
from holdfast.store.sqlite import cache as module
from holdfast.store.sqlite.cache import Cache
from tests.conftest import until
from verification.stores.records import ORG, a_task, an_execution, an_id


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache that holds three of each, on a database that has been looked at once."""
    for name in ("MAX_EXECUTIONS", "MAX_TASKS", "MAX_KEYS"):
        monkeypatch.setattr(module, name, 3)
    cache = Cache()
    cache.confirm(1)
    return cache


def test_the_least_recently_written_are_forgotten(cache):
    """However many executions there are, the cache stays within its bounds."""
    made = [an_execution(number) for number in range(1, 4)]
    cache.absorb(Changes(new_executions=made, workflow_keys={(ORG, str(n)): an_id(n) for n in range(9)}))
    cache.absorb(Changes(changed_executions={made[0].id: made[0]}))
    cache.absorb(Changes(new_executions=[an_execution(4)]))

    assert set(cache.executions) == {an_id(3), an_id(1), an_id(4)}
    assert len(cache.workflow_keys) == 3


def test_tasks_are_bounded_by_their_number(cache):
    """Not by the number of executions that have any."""
    first, second = an_execution(1), an_execution(2)
    cache.absorb(Changes(new_tasks=[a_task(first, number) for number in (1, 2)]))
    cache.absorb(Changes(new_tasks=[a_task(second, number) for number in (1, 2)]))

    assert cache.tasks.get((first.id, 1)) is None
    assert cache.tasks.get((second.id, 1)) == a_task(second)


def test_large_payloads_are_not_kept(cache):
    """Nor is the smaller row they replace: it would be out of date."""
    execution = an_execution()
    cache.absorb(Changes(new_tasks=[a_task(execution, 1, input=Raw(b"1" * 20_000)), a_task(execution, 2)]))
    grown = a_task(execution, 2, details=Raw(b"1" * 20_000))
    cache.absorb(Changes(changed_tasks={(execution.id, 2): grown}))

    assert cache.tasks.get((execution.id, 1)) is None
    assert cache.tasks.get((execution.id, 2)) is None


def test_somebody_elses_commit_empties_it(cache):
    """The first look at a database is nobody's commit."""
    cache.absorb(Changes(new_executions=[an_execution()], workflow_keys={(ORG, "k"): an_id(1)}))
    assert cache.confirm(1) is False
    assert cache.executions

    assert cache.confirm(2) is True
    assert not cache.executions
    assert not cache.workflow_keys
    assert Cache().confirm(7) is False


@pytest.mark.sqlite_only("looks into the cache of the SQLite store")
async def test_the_rules_name_all_they_change(engine):
    """After a mixed load the cached heads are those in the file: a change the rules forgot to name would differ."""

    @task(retry=RetryPolicy(max_attempts=2, initial_interval_s=0.01))
    async def work(number: int) -> int:
        if number % 3 == 0:
            raise ValueError("no")
        return number

    @workflow
    async def mixed(ctx: WorkflowContext, number: int) -> int:
        await ctx.settled(
            ctx.task(work, number), ctx.run(work, number, retry=RetryPolicy(max_attempts=1)), ctx.sleep(0)
        )
        if number % 2:
            await ctx.wait_for_signal("go", timeout=3600)
        return number

    running = await engine(workflows=[mixed], tasks=[work])
    client = running.client
    handles = [await client.start_workflow(mixed, number, workflow_id=f"w{number}") for number in range(60)]
    for handle in handles[1::4]:
        await handle.signal("go")
    for handle in handles[3::8]:
        await handle.cancel()
    await handles[7].terminate()
    closed = [handle for number, handle in enumerate(handles) if number % 2 == 0 or number % 4 == 1]
    for handle in closed:
        await handle.result(timeout=20)
    await until(lambda: all_at_rest(client))
    cached = running.storage._writer._transactions._cache.executions
    read = await running.storage.executions("default", list(cached))

    assert len(handles) == len(cached)
    assert read == dict(cached)


async def all_at_rest(client):
    counts = await client.count_workflows()
    return not counts.get(WorkflowStatus.RUNNING) and not counts.get(WorkflowStatus.PENDING)
