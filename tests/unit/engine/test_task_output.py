"""What a task says while it runs: it reaches whoever watches, in order, bounded, and can be read later."""

import asyncio
import itertools
import threading
from typing import Any

import pytest
from msgspec import Raw

from holdfast import EngineConfig, RetryPolicy, TaskContext, WorkflowContext, task, workflow
from holdfast.config import Limits
from holdfast.contract import workers as wk
from holdfast.errors import (
    ExecutionNotFound,
    InvalidRequest,
    PayloadNotEncodable,
    PayloadTooLarge,
    TaskNotFound,
    Unavailable,
)
from holdfast.model.values import Token
from tests.conftest import QUICK, until

ONCE = RetryPolicy(max_attempts=1)
AGAIN = RetryPolicy(initial_interval_s=0.01, jitter=False, max_attempts=3)
FEW = EngineConfig(
    store=QUICK.store, worker=QUICK.worker, secret_key=QUICK.secret_key, limits=Limits(output_chunks_per_task=10)
)


class Stage:
    """Where a test holds a body, and what the body has noticed."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = threading.Event()
        self.refused: list[Any] = []


STAGE = Stage()


@pytest.fixture(autouse=True)
def stage():
    global STAGE  # noqa: PLW0603 - bodies find it there
    STAGE = Stage()
    return STAGE


@task(retry=ONCE)
async def tells(ctx: TaskContext, words: list[Any]) -> int:
    for word in words:
        ctx.emit(word)
    return len(words)


@task(retry=ONCE)
async def tells_and_waits(ctx: TaskContext, words: list[Any]) -> None:
    for word in words:
        ctx.emit(word)
    STAGE.begun.set()
    await STAGE.go.wait()
    ctx.emit("last")


@task(retry=AGAIN)
async def tells_again(ctx: TaskContext) -> None:
    ctx.emit(f"attempt {ctx.info.attempt}")
    if ctx.info.attempt < 3:
        raise ValueError("not yet")


@task(retry=ONCE)
def counts(ctx: TaskContext, most: int) -> int:
    for number in range(1, most + 1):
        ctx.emit(number)
    return most


@task(retry=ONCE)
async def goes_on(ctx: TaskContext) -> None:
    ctx.heartbeat(progress=0.25)
    await STAGE.go.wait()


@task(retry=ONCE)
async def says_nothing(ctx: TaskContext) -> str:
    await asyncio.sleep(0.3)
    return ctx.info.kind


@task(retry=ONCE)
async def says_what_it_must_not(ctx: TaskContext) -> None:
    for chunk in (object(), float("nan"), "x" * 70_000):
        try:
            ctx.emit(chunk)
        except Exception as error:
            STAGE.refused.append(error)
    ctx.emit("fine")


@workflow
async def runs(ctx: WorkflowContext, what: list[Any]) -> Any:
    kind, *args = what
    return await ctx.task(kind, *args, start_to_close=60, retry=AGAIN)


@workflow
async def gives_up(ctx: WorkflowContext) -> str:
    work = ctx.task(tells_and_waits, ["a"], start_to_close=60)
    await ctx.wait_for_signal("enough")
    work.cancel()
    await ctx.wait_for_signal("end")
    return "done"


TASKS = [tells, tells_and_waits, tells_again, counts, goes_on, says_nothing, says_what_it_must_not]


async def opened(engine, config=QUICK, **options):
    return await engine(workflows=[runs, gives_up], tasks=TASKS, config=config, **options)


async def started(running, *what):
    return (await running.client.start_workflow(runs, list(what))).id


async def told(client, execution_id, **options):
    return [update async for update in client.follow_task(execution_id, 1, **options)]


async def first(client, execution_id, count, **options):
    """The first updates, and the rest to come."""
    updates = client.follow_task(execution_id, 1, **options)
    return [await asyncio.wait_for(anext(updates), 20) for _ in range(count)], updates


def words(updates):
    return [update.value for update in updates if update.kind == "output"]


async def scheduled(running, execution_id):
    """The task is there."""
    return await until(lambda: running._local.store.task("default", execution_id, 1))


# --- following ---


async def test_a_follower_hears_it_while_the_task_runs(engine, stage):
    """What was said comes before the task ends; then the rest, then how it ended."""
    running = await opened(engine)
    execution_id = await started(running, "tells_and_waits", ["a", {"b": [1, None]}])
    await scheduled(running, execution_id)
    heard, updates = await first(running.client, execution_id, 3)
    stage.go.set()
    rest = [update async for update in updates]

    assert ["attempt", "output", "output"] == [update.kind for update in heard]
    assert ["a", {"b": [1, None]}] == words(heard)
    assert ["output", "ended"] == [update.kind for update in rest]
    assert ["last"] == words(rest)
    assert ("completed", 1) == (rest[-1].status, rest[-1].attempt)
    assert [1, 2, 3] == [update.seq for update in (*heard, *rest) if update.kind == "output"]


async def test_nothing_is_lost_when_the_task_ends_at_once(engine):
    """What waits to be passed on travels with the attempt's report."""
    running = await opened(engine)
    execution_id = await started(running, "tells", list(range(150)))
    assert 150 == await running.client.workflow(execution_id).result()
    updates = await told(running.client, execution_id)

    assert list(range(150)) == words(updates)
    assert "completed" == updates[-1].status
    assert not any(update.dropped for update in updates)


async def test_each_attempt_is_told_and_the_numbers_continue(engine):
    """An attempt that fails keeps what it said; the next one's chunks follow."""
    running = await opened(engine)
    execution_id = await started(running, "tells_again")
    await running.client.workflow(execution_id).result()
    updates = await told(running.client, execution_id)

    outputs = [(update.seq, update.attempt, update.value) for update in updates if update.kind == "output"]
    assert [(1, 1, "attempt 1"), (2, 2, "attempt 2"), (3, 3, "attempt 3")] == outputs
    assert [1, 2, 3] == [update.attempt for update in updates if update.kind == "attempt"]
    assert ("completed", 3) == (updates[-1].status, updates[-1].attempt)


async def test_a_follower_comes_back_where_it_was(engine, stage):
    running = await opened(engine)
    execution_id = await started(running, "tells_and_waits", list("abcd"))
    await until(stage.begun.is_set)
    heard, updates = await first(running.client, execution_id, 3)
    await updates.aclose()
    stage.go.set()
    again = await told(running.client, execution_id, after=heard[-1].seq)

    assert ["a", "b"] == words(heard)
    assert ["c", "d", "last"] == words(again)
    assert not any(update.dropped for update in again)


async def test_progress_is_told(engine, stage):
    """The newest one, also to whoever comes later; the task need not say anything."""
    running = await opened(engine)
    execution_id = await started(running, "goes_on")
    await scheduled(running, execution_id)
    heard, updates = await first(running.client, execution_id, 2)
    later, _ = await first(running.client, execution_id, 2)
    stage.go.set()
    rest = [update async for update in updates]

    assert [("attempt", None), ("progress", 0.25)] == [(update.kind, update.progress) for update in heard]
    assert later == heard
    assert ["ended"] == [update.kind for update in rest]


async def test_a_failed_task_says_why(engine):
    running = await opened(engine)
    execution_id = await started(running, "tells", [1], "one too many")
    await until(lambda: _is_closed(running, execution_id))
    updates = await told(running.client, execution_id)

    assert "failed" == updates[-1].status
    assert updates[-1].failure is not None


async def _is_closed(running, execution_id):
    return not (await running.client.workflow(execution_id).status()).is_open


async def test_a_cancelled_task_ends_for_its_followers(engine, stage):
    """The workflow goes on without it. What its body says after that is not heard."""
    running = await opened(engine)
    handle = await running.client.start_workflow(gives_up)
    await until(stage.begun.is_set)
    heard, updates = await first(running.client, handle.id, 2)
    await handle.signal("enough")
    rest = [update async for update in updates]
    stage.go.set()
    await handle.signal("end")
    await handle.result()
    page = await running.client.task_output(handle.id, 1)

    assert ["a"] == words(heard)
    assert [("ended", "cancelled")] == [(update.kind, update.status) for update in rest]
    assert ["a"] == [chunk.value for chunk in page.chunks]


async def test_a_closed_workflow_ends_its_tasks_for_their_followers(engine, stage):
    running = await opened(engine)
    execution_id = await started(running, "tells_and_waits", ["a"])
    await until(stage.begun.is_set)
    _, updates = await first(running.client, execution_id, 2)
    await running.client.terminate_workflow(execution_id)
    rest = [update async for update in updates]

    assert ["cancelled"] == [update.status for update in rest]


async def test_what_another_process_runs_can_be_followed(engine, stage):
    """A node without workers is told of what others commit."""
    running = await opened(engine)
    elsewhere = await engine()
    execution_id = await started(running, "tells_and_waits", ["a"])
    await until(stage.begun.is_set)
    heard, updates = await first(elsewhere.client, execution_id, 2)
    stage.go.set()
    rest = [update async for update in updates]

    assert ["a", "last"] == [*words(heard), *words(rest)]
    assert "completed" == rest[-1].status


async def test_a_slow_follower_misses_nothing_that_is_kept(engine):
    """It reads on from the store when what is remembered has passed it by."""
    running = await opened(engine)
    execution_id = await started(running, "counts", 900)
    await scheduled_or_done(running, execution_id)
    heard, updates = await first(running.client, execution_id, 2)
    await running.client.workflow(execution_id).result()
    rest = [update async for update in updates]

    assert list(range(1, 901)) == [*words(heard), *words(rest)]


async def scheduled_or_done(running, execution_id):
    await until(lambda: _has_task(running, execution_id))


async def _has_task(running, execution_id):
    events = await running._local.store.history("default", execution_id, types=("TASK_SCHEDULED",))
    return bool(events)


async def test_many_followers_cost_one_reader(engine, stage, monkeypatch):
    running = await opened(engine)
    execution_id = await started(running, "tells_and_waits", ["a"])
    await until(stage.begun.is_set)
    store, reads = running._local.store, itertools.count()
    followers = [await first(running.client, execution_id, 2) for _ in range(50)]
    original = type(store).task_output

    def counted(self, *args):
        next(reads)
        return original(self, *args)

    monkeypatch.setattr(type(store), "task_output", counted)
    stage.go.set()
    rests = await asyncio.gather(*(_rest(updates) for _, updates in followers))

    assert all(["last"] == words(rest) for rest in rests)
    assert next(reads) <= 10


async def _rest(updates):
    return [update async for update in updates]


async def test_a_follower_that_goes_leaves_nothing_behind(engine, stage):
    running = await opened(engine)
    execution_id = await started(running, "tells_and_waits", ["a"])
    await until(stage.begun.is_set)
    _, updates = await first(running.client, execution_id, 2)
    await updates.aclose()

    await until(lambda: not running._local.feeds.tasks._feeds)


async def test_the_end_of_the_engine_ends_a_follower(engine, stage):
    running = await opened(engine)
    execution_id = await started(running, "tells_and_waits", ["a"])
    await until(stage.begun.is_set)
    _, updates = await first(running.client, execution_id, 2)
    waiting = asyncio.ensure_future(anext(updates, None))
    await running.shutdown()
    outcome = (await asyncio.gather(waiting, return_exceptions=True))[0]

    assert isinstance(outcome, Unavailable)


async def test_the_sync_client_follows(engine):
    running = await opened(engine)
    execution_id = await started(running, "tells", ["a", "b"])
    await running.client.workflow(execution_id).result()
    sync = running.client.sync

    def follow():
        page = sync.task_output(execution_id, 1)
        return [chunk.value for chunk in page.chunks], [update.kind for update in sync.follow_task(execution_id, 1)]

    assert (["a", "b"], ["attempt", "output", "output", "ended"]) == await asyncio.to_thread(follow)


async def test_values_are_read_as_the_type_that_is_asked_for(engine):
    running = await opened(engine)
    execution_id = await started(running, "tells", ["2", "3"])
    await running.client.workflow(execution_id).result()

    page = await running.client.task_output(execution_id, 1, type_hint=str)
    assert ["2", "3"] == [chunk.value for chunk in page.chunks]


async def test_a_task_on_its_own_is_followed(engine, stage):
    """From before its first attempt; by its own id, too."""
    running = await opened(engine)
    handle = await running.client.start_task(tells_and_waits, ["a"], task_id="T-1")
    updates = handle.follow()
    heard = [await asyncio.wait_for(anext(updates), 20) for _ in range(2)]
    stage.go.set()
    rest = [update async for update in updates]
    page = await running.client.task("T-1").output()

    assert ["attempt", "output"] == [update.kind for update in heard]
    assert [("output", "last"), ("ended", None)] == [(update.kind, update.value) for update in rest]
    assert ["a", "last"] == [chunk.value for chunk in page.chunks]


async def test_a_task_on_its_own_that_never_starts_ends_for_its_followers(engine):
    """Ended before any worker had taken it."""
    running = await opened(engine)
    handle = await running.client.start_task(tells, ["a"], queue="nobody's")
    updates = asyncio.ensure_future(_rest(handle.follow()))
    await running.client.terminate_workflow(handle.workflow_execution_id)

    assert [("ended", "cancelled")] == [(update.kind, update.status) for update in await updates]


# --- bounds ---


async def test_a_hundred_thousand_chunks_are_bounded(engine):
    """The newest thousand are kept, and the numbers tell how many are gone."""
    running = await opened(engine)
    execution_id = await started(running, "counts", 100_000)
    await running.client.workflow(execution_id).result()
    page = await running.client.task_output(execution_id, 1, limit=1000)

    assert 100_000 == page.chunks[-1].seq == page.chunks[-1].value
    assert all(chunk.seq == chunk.value for chunk in page.chunks)
    assert 100_000 == sum(1 + chunk.dropped for chunk in page.chunks)
    assert (1_000, False) == (len(page.chunks), page.more)


async def test_only_the_newest_are_kept_over_all_attempts(engine):
    running = await opened(engine, FEW)
    execution_id = await started(running, "counts", 25)
    await running.client.workflow(execution_id).result()
    page = await running.client.task_output(execution_id, 1)
    updates = await told(running.client, execution_id, after=3)

    assert list(range(16, 26)) == [chunk.value for chunk in page.chunks]
    assert [15, 0] == [chunk.dropped for chunk in page.chunks[:2]]
    assert 12 == next(update.dropped for update in updates if update.kind == "output")


async def test_pages(engine):
    running = await opened(engine)
    execution_id = await started(running, "tells", list(range(7)))
    await running.client.workflow(execution_id).result()
    one = await running.client.task_output(execution_id, 1, limit=4)
    two = await running.client.task_output(execution_id, 1, after=one.chunks[-1].seq, limit=4)

    assert ([0, 1, 2, 3], True) == ([chunk.value for chunk in one.chunks], one.more)
    assert ([4, 5, 6], False) == ([chunk.value for chunk in two.chunks], two.more)
    assert {0} == {chunk.dropped for chunk in (*one.chunks, *two.chunks)}


async def test_a_task_that_says_nothing_costs_nothing(engine, monkeypatch):
    """No heartbeat is sent for it, and its report is as it was; one that speaks sends some."""
    running = await opened(engine)
    beats: list[wk.Heartbeat] = []
    original = running._local.workers.heartbeat

    def counted(request):
        beats.append(request)
        return original(request)

    monkeypatch.setattr(running._local.workers, "heartbeat", counted)
    await running.client.workflow(await started(running, "says_nothing")).result()
    quiet = len(beats)
    execution_id = await started(running, "tells_and_waits", ["a"])
    await until(lambda: len(beats) > quiet)
    STAGE.go.set()
    await running.client.workflow(execution_id).result()

    assert 0 == quiet


# --- refusals ---


async def test_what_can_not_be_said_is_refused_where_it_is_said(engine, stage):
    """The body's own call raises, naming the field; what it says next is heard."""
    running = await opened(engine)
    execution_id = await started(running, "says_what_it_must_not")
    await running.client.workflow(execution_id).result()
    page = await running.client.task_output(execution_id, 1)

    assert [PayloadNotEncodable, PayloadNotEncodable, PayloadTooLarge] == [type(error) for error in stage.refused]
    assert {"chunk"} == {error.details["field"].partition(".")[0] for error in stage.refused}
    assert ["fine"] == [chunk.value for chunk in page.chunks]
    assert 1 == page.chunks[0].seq


async def test_unknown_executions_and_tasks_are_refused(engine):
    running = await opened(engine)
    execution_id = await started(running, "tells", [])
    await running.client.workflow(execution_id).result()

    for number, error in ((1, ExecutionNotFound), (2, TaskNotFound)):
        target = "0198aaaa-0000-7000-8000-000000000000" if error is ExecutionNotFound else execution_id
        with pytest.raises(error):
            await running.client.task_output(target, number)
        with pytest.raises(error):
            await anext(running.client.follow_task(target, number))
    assert () == (await running.client.task_output(execution_id, 1)).chunks


@pytest.mark.parametrize(
    ("options", "field"), [({"after": -1}, "after"), ({"limit": 0}, "limit"), ({"limit": 10_000}, "limit")]
)
async def test_bad_pages_are_refused(engine, options, field):
    running = await opened(engine)
    execution_id = await started(running, "tells", ["a"])
    await running.client.workflow(execution_id).result()

    with pytest.raises(InvalidRequest) as refused:
        await running.client.task_output(execution_id, 1, **options)
    assert field == refused.value.details["field"]


async def test_another_org_finds_nothing(engine, stage):
    """The same answer as for an execution that never was."""
    running = await opened(engine)
    execution_id = await started(running, "tells_and_waits", ["a"])
    await until(stage.begun.is_set)
    rival = await engine(org="rival")

    with pytest.raises(ExecutionNotFound):
        await rival.client.task_output(execution_id, 1)
    with pytest.raises(ExecutionNotFound):
        await anext(rival.client.follow_task(execution_id, 1))


# --- attempts that no longer count ---


async def beat(running, session, work, *chunks, token=None):
    said = tuple(wk.OutputChunk(seq, Raw(data)) for seq, data in chunks)
    one = wk.TaskBeat(
        execution_id=work.execution_id, task_no=work.task_no, token=token or work.token, output=said, progress=None
    )
    request = wk.Heartbeat(org="default", session=session, lease_s=30.0, tasks=(one,))
    return await asyncio.wrap_future(running._local.workers.heartbeat(request))


async def by_hand(engine):
    """A session of the test's own that runs the task of an execution."""
    running = await engine(workflows=[runs])
    execution_id = await started(running, "tells", [])
    return running, execution_id, await taken_by(running, "hand")


async def taken_by(running, session):
    """The task, given to a session of the test's own."""
    workers = running._local.workers
    await workers.register(
        wk.RegisterWorker(
            org="default",
            session=session,
            host="here",
            pid=1,
            builds={},
            task_kinds=("tells",),
            turn_slots=0,
            task_slots=1,
            lease_s=30.0,
        )
    )
    given = await asyncio.wait_for(workers.poll(session), 20)
    return next(work for work in given if isinstance(work, wk.TaskWork))


async def kept(running, execution_id):
    return [(chunk.seq, chunk.value) for chunk in (await running.client.task_output(execution_id, 1)).chunks]


async def test_what_is_sent_twice_counts_once(engine):
    """A worker that has got no answer sends its chunks again, and again with its report."""
    running, execution_id, work = await by_hand(engine)
    await beat(running, "hand", work, (1, b"1"), (2, b"2"))
    await beat(running, "hand", work, (1, b"1"), (2, b"2"), (3, b"3"))
    report = wk.CompleteTask(
        org="default",
        session="hand",
        execution_id=work.execution_id,
        task_no=1,
        token=work.token,
        output=(wk.OutputChunk(3, Raw(b"3")), wk.OutputChunk(4, Raw(b"4"))),
    )
    await running._local.workers.complete_task(report)

    assert [(1, 1), (2, 2), (3, 3), (4, 4)] == await kept(running, execution_id)


async def test_output_of_an_attempt_that_is_over_is_refused(engine):
    """Nothing of it is recorded, and the worker is told."""
    running, execution_id, work = await by_hand(engine)
    strange = Token(work.token.epoch, work.token.nonce + 1)
    answer = await beat(running, "hand", work, (1, b"1"), token=strange)

    assert ((execution_id, 1, work.token.epoch),) == answer.stale
    assert [] == await kept(running, execution_id)


async def test_chunks_that_are_too_large_are_dropped_by_the_engine(engine):
    """A worker that does not know the limit can't make the database grow; the number tells that one is missing."""
    running, execution_id, work = await by_hand(engine)
    await beat(running, "hand", work, (1, b'"%s"' % (b"x" * 70_000)), (2, b"2"))
    page = await running.client.task_output(execution_id, 1)

    assert [(2, 1)] == [(chunk.value, chunk.dropped) for chunk in page.chunks]


async def test_the_next_attempt_continues_after_a_worker_that_died(engine):
    """The dead one's chunks stay; the numbers of the next attempt follow on, and the dead one is heard no more."""
    running, execution_id, work = await by_hand(engine)
    await beat(running, "hand", work, (1, b'"before"'))
    await running._local.workers.unregister("default", "hand")
    again = await taken_by(running, "second")
    await beat(running, "second", work, (2, b'"from the grave"'))
    await beat(running, "second", again, (again.output_seq + 1, b'"after"'))

    assert 1 == again.output_seq
    assert [(1, "before"), (2, "after")] == await kept(running, execution_id)
