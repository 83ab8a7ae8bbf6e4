"""Who may write for an execution or a task: a worker played by the test, on a clock the test turns."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from holdfast import Engine, EngineConfig, Status, WorkerConfig
from holdfast.contract import workers as wk
from holdfast.contract.instants import micros
from holdfast.errors import InvalidRequest, StaleAttempt, StaleClaim
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.executions import StuckReason
from holdfast.model.values import Failure, RetryPolicy, TaskTimeouts, Token, Wait
from tests.conftest import QUICK

SECOND = 1_000_000
ON_SIGNAL = (Wait("signal", "go"),)


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


class Hand:
    """A worker session that does what the test says, step by step."""

    def __init__(self, engine: Engine, session: str) -> None:
        self.session = session
        self.workers = engine._local.workers
        self.post: list[wk.Work] = []
        self.polling: asyncio.Future[list[wk.Work]] | None = None

    async def register(self, build: str = "b1", turn_slots: int = 10, task_slots: int = 10) -> "Hand":
        await self.workers.register(
            wk.RegisterWorker(
                org="default",
                session=self.session,
                host="here",
                pid=1,
                builds={("k", "1"): build},
                task_kinds=("t",),
                turn_slots=turn_slots,
                task_slots=task_slots,
                lease_s=30.0,
            )
        )
        return self

    async def get(self, kind: type) -> Any:
        """The next piece of work of this kind."""
        while True:
            for work in self.post:
                if isinstance(work, kind):
                    self.post.remove(work)
                    return work
            polling, self.polling = self.polling or self.workers.poll(self.session), None
            self.post += await asyncio.wait_for(polling, 10)

    async def commit(self, work: wk.TurnWork, *commands: c.Command, **options: Any) -> wk.TurnAnswer:
        turn = c.Turn(up_to=options.pop("up_to", work.last_seq), commands=commands)
        given: dict[str, Any] = {"base_seq": work.last_seq, "token": work.token, "turns": (turn,)} | options
        return await self.workers.complete_turn(
            wk.CompleteTurn(org="default", execution_id=work.execution_id, worker=self.session, **given)
        )

    async def complete(self, task: wk.TaskWork, result: str = "null", token: Token | None = None) -> None:
        await self.workers.complete_task(
            wk.CompleteTask(
                org="default",
                session=self.session,
                execution_id=task.execution_id,
                task_no=task.task_no,
                token=token or task.token,
                result=Raw(result.encode()),
            )
        )

    async def fail(self, task: wk.TaskWork) -> None:
        failure = Failure(type="ValueError", message="no")
        await self.workers.fail_task(
            wk.FailTask(
                org="default",
                session=self.session,
                execution_id=task.execution_id,
                task_no=task.task_no,
                token=task.token,
                failure=failure,
            )
        )

    async def beat(self, *running: wk.TaskWork) -> wk.HeartbeatAnswer:
        tokens = tuple((task.execution_id, task.task_no, task.token) for task in running)
        request = wk.Heartbeat(org="default", session=self.session, lease_s=30.0, running=tokens)
        return await asyncio.wrap_future(self.workers.heartbeat(request))

    async def nothing_more(self) -> bool:
        """Whether a look round the engine brings nothing. The answer to an operation comes after the work it gave."""
        self.polling = self.polling or self.workers.poll(self.session)
        await self.beat()
        return not self.polling.done() and not self.post


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def running(engine, clock):
    """An engine without a worker of its own."""
    config = EngineConfig(store=QUICK.store, worker=WorkerConfig(), stuck_retry_s=300.0, crash_attempts=3)
    return await engine(clock=clock, config=config)


@pytest.fixture
async def hand(running):
    return await Hand(running, "hand").register()


async def start(running):
    return await running.client.start_workflow("k")


async def types(handle):
    return [event.type for event in await handle.history()]


def task_command(number: int = 1, **options: Any) -> c.ScheduleTask:
    return c.ScheduleTask(task_no=number, kind="t", input=Raw(b"[]"), **options)


# --- turns ------------------------------------------------------------------------------------------------------------


async def test_a_start_is_handed_out_at_once(running, hand):
    """With its events and a token, in the same step; the execution is RUNNING."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)

    assert (handle.id, "k", "1", 1, 1) == (work.execution_id, work.kind, work.version, work.last_seq, work.token.epoch)
    assert ["WORKFLOW_STARTED"] == [event.type for event in work.events]
    assert Status.RUNNING == await handle.status()


async def test_a_quiet_turn_gives_the_lease_back(running, hand):
    """Recorded, released, WAITING; the next signal is a new lease with a larger number."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    answer = await hand.commit(work, waiting_for=ON_SIGNAL)

    assert wk.TurnAnswer(wk.TurnVerdict.RECORDED, first_seq=2, last_seq=2, released=True) == answer
    assert Status.WAITING == await handle.status()
    await handle.signal("go")
    again = await hand.get(wk.TurnWork)
    assert (3, 2) == (again.last_seq, again.token.epoch)
    assert ["SIGNAL_RECEIVED"] == [event.type for event in again.events]


async def test_news_go_to_the_holder(running, hand):
    """What arrives during a turn is told at once and needs no new lease."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    await handle.signal("go", 7)
    news = await hand.get(wk.News)

    assert (handle.id, 2) == (news.execution_id, news.last_seq)
    assert [b"7"] == [bytes(event.body.signal_value) for event in news.events]
    answer = await hand.commit(work, waiting_for=ON_SIGNAL)
    assert (False, 3) == (answer.released, answer.last_seq)


@pytest.mark.parametrize("wrong", ["epoch", "nonce", "both"])
async def test_a_wrong_token_is_refused(running, hand, wrong):
    """Number and random part are both compared; nothing is recorded, and the right holder goes on."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    token = Token(
        work.token.epoch + (wrong != "nonce"),
        work.token.nonce ^ (wrong != "epoch"),
    )
    with pytest.raises(StaleClaim, match=handle.id) as refused:
        await hand.commit(work, task_command(), token=token)

    assert "stale_claim" == refused.value.code
    assert ["WORKFLOW_STARTED"] == await types(handle)
    assert (await hand.commit(work, waiting_for=ON_SIGNAL)).released


async def test_a_lease_ends_with_its_release(running, hand):
    """A second commit with the same token is refused."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    await hand.commit(work, waiting_for=ON_SIGNAL)
    before = await handle.history()
    with pytest.raises(StaleClaim):
        await hand.commit(work, task_command(), base_seq=2)

    assert before == await handle.history()


async def test_a_silent_session_loses_its_turns(running, hand, clock):
    """After its lease another session gets the execution with a new token, and the old one is refused."""
    handle = await start(running)
    old = await hand.get(wk.TurnWork)
    clock.advance(31)
    other = await Hand(running, "other").register()
    await running.recover()
    new = await other.get(wk.TurnWork)

    assert new.token.epoch > old.token.epoch
    with pytest.raises(StaleClaim):
        await hand.commit(old, task_command())
    assert (await other.commit(new, waiting_for=ON_SIGNAL)).released
    assert ["WORKFLOW_STARTED", "WORKFLOW_TASK_COMPLETED"] == await types(handle)


async def test_heartbeats_keep_a_session(running, hand, clock):
    """As long as they come within the lease; one that has expired is told so."""
    await start(running)
    work = await hand.get(wk.TurnWork)
    for _ in range(5):
        clock.advance(20)
        assert (await hand.beat()).alive
        assert 0 == (await running.recover()).sessions_expired

    assert (await hand.commit(work, waiting_for=ON_SIGNAL)).released
    clock.advance(31)
    await running.recover()
    assert not (await hand.beat()).alive


async def test_a_program_that_takes_its_workers_down_is_parked(running, clock):
    """Three sessions lost while they ran its turn: STUCK, with the reason."""
    handle = await start_unclaimed(running)
    for number in range(3):
        clock.advance(60)
        lost = await Hand(running, f"session {number}").register()
        await lost.get(wk.TurnWork)
        clock.advance(31)
        await running.recover()
    view = await handle.describe()

    assert (Status.STUCK, "worker_crashes") == (view.status, view.stuck.code)
    assert "3 times" in view.stuck.message
    assert await handle.resume()
    last = await Hand(running, "last").register()
    assert handle.id == (await last.get(wk.TurnWork)).execution_id


async def test_of_two_suspects_the_one_taken_last_is_to_blame(running, clock):
    """The first has outlived two heartbeats and so got company; the loss that follows does not park it."""
    suspects = [await start_unclaimed(running) for _ in range(2)]
    for number in range(2):
        clock.advance(60)
        lost = await Hand(running, f"session {number}").register()
        await lost.get(wk.TurnWork)
        await lost.get(wk.TurnWork)
        clock.advance(31)
        await running.recover()
    clock.advance(60)
    last = await Hand(running, "last").register()
    first = await last.get(wk.TurnWork)
    assert await last.nothing_more()
    clock.advance(10)
    await last.beat()

    second = await last.get(wk.TurnWork)
    clock.advance(31)
    await running.recover()

    statuses = {handle.id: (await handle.describe()).status for handle in suspects}
    assert {first.execution_id: Status.PENDING, second.execution_id: Status.STUCK} == statuses


async def start_unclaimed(running):
    """A kind that is known, and an execution of it that nobody has."""
    first = await Hand(running, "first").register()
    await first.workers.unregister("default", "first")
    return await start(running)


async def test_handing_back_counts_as_no_crash(running, hand):
    """A released turn is free for others at once, under a new token."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    await hand.workers.drain("hand")
    other = await Hand(running, "other").register()
    await hand.workers.release(wk.ReleaseWork(org="default", session="hand", turns=((work.execution_id, work.token),)))
    new = await other.get(wk.TurnWork)

    assert handle.id == new.execution_id
    assert new.token.epoch > work.token.epoch
    assert (await other.commit(new, waiting_for=ON_SIGNAL)).released


async def test_no_more_turns_than_slots(running):
    """The second execution waits, PENDING, until the first is let go."""
    hand = await Hand(running, "hand").register(turn_slots=1)
    first, second = await start(running), await start(running)
    work = await hand.get(wk.TurnWork)

    assert await hand.nothing_more()
    assert {Status.RUNNING, Status.PENDING} == {await first.status(), await second.status()}
    await hand.commit(work, waiting_for=ON_SIGNAL)
    assert {first.id, second.id} == {work.execution_id, (await hand.get(wk.TurnWork)).execution_id}


# --- what a commit records --------------------------------------------------------------------------------------------


async def test_a_turn_with_commands_leaves_their_rows(running, hand):
    """Each carries the number up to which the turn had seen, whatever came meanwhile."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    await handle.signal("go")
    fire_at = running._clock() + 60 * SECOND
    await hand.commit(work, task_command(), c.StartTimer(timer_no=1, fire_at=fire_at))
    history = await handle.history()

    assert ["SIGNAL_RECEIVED", "TASK_SCHEDULED", "TIMER_STARTED"] == [event.type for event in history[1:]]
    assert [1, 1] == [event.body.up_to for event in history[2:]]
    assert [1] == [row.task_no for row in await handle.pending_tasks()]
    assert [fire_at] == [micros(row.fire_at) for row in await handle.pending_timers()]


def step(number: int, up_to: int) -> e.StepCompleted:
    return e.StepCompleted(step_no=number, name="s", up_to=up_to)


async def test_a_step_and_the_turn_after_it_are_one_commit(running, hand):
    """The turn run ahead is recorded when nothing came in between."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    ahead = c.Turn(up_to=3, commands=(task_command(),))
    answer = await hand.commit(work, steps=(step(1, 1),), after_steps=ahead, waiting_for=ON_SIGNAL)

    assert (wk.TurnVerdict.RECORDED, True) == (answer.verdict, answer.released)
    assert [
        "WORKFLOW_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "STEP_COMPLETED",
        "TASK_SCHEDULED",
        "WORKFLOW_TASK_COMPLETED",
    ] == await types(handle)


async def test_a_turn_run_ahead_is_dropped_when_something_came_in_between(running, hand):
    """Its step is recorded, because it has run; the turn has to be run again with what came."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    await handle.signal("go")
    ahead = c.Turn(up_to=3, commands=(task_command(),))
    answer = await hand.commit(work, steps=(step(1, 1),), after_steps=ahead, waiting_for=ON_SIGNAL)

    assert (wk.TurnVerdict.STEPS_ONLY, False) == (answer.verdict, answer.released)
    assert [
        "WORKFLOW_STARTED",
        "SIGNAL_RECEIVED",
        "WORKFLOW_TASK_COMPLETED",
        "STEP_COMPLETED",
    ] == await types(handle)
    assert [] == await handle.pending_tasks()


async def test_what_a_turn_had_seen_is_known_by_the_step_it_has_asked_for(running, hand):
    """A step recorded alone tells of its turn: what that may have read is no dead letter, what came after it is."""
    handle = await start(running)
    await hand.commit(await hand.get(wk.TurnWork), waiting_for=ON_SIGNAL)
    await handle.signal("go")
    work = await hand.get(wk.TurnWork)
    await handle.signal("go")
    ahead = c.Turn(up_to=4, commands=(task_command(),))
    answer = await hand.commit(work, turns=(), steps=(step(1, 3),), after_steps=ahead, waiting_for=ON_SIGNAL)
    assert wk.TurnVerdict.STEPS_ONLY == answer.verdict
    await handle.terminate()

    assert [4] == [letter.seq for letter in await running.client.dead_letters(handle.id)]


@pytest.mark.parametrize("call", ["signal", "cancel"])
async def test_the_end_is_not_recorded_over_an_unseen_call(running, hand, call):
    """The turn is sent back to be run again; after three such rounds the execution closes all the same."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    known = work.last_seq
    for round_number in range(3):
        if call == "cancel" and round_number == 0:
            await handle.cancel()
        else:
            await handle.signal("go", round_number)
        answer = await hand.commit(work, c.CompleteWorkflow(), up_to=known, base_seq=known)
        assert (wk.TurnVerdict.UNREAD, False, False) == (answer.verdict, answer.closed, answer.released)
        known = answer.last_seq
    await handle.signal("go", "unread")
    answer = await hand.commit(work, c.CompleteWorkflow(), up_to=known, base_seq=known, unread=(3,))

    assert (wk.TurnVerdict.RECORDED, True) == (answer.verdict, answer.closed)
    assert Status.COMPLETED == await handle.status()
    letters = {letter.seq: letter.reason for letter in await running.client.dead_letters(handle.id)}
    history = await handle.history()
    last_signal = max(event.seq for event in history if event.type == "SIGNAL_RECEIVED")
    assert {3: "closed_before_read", last_signal: "closed_before_read"} == letters


async def test_other_news_do_not_hold_up_the_end(running, hand):
    """A task that finished meanwhile is nothing the program has to see."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    await hand.commit(work, task_command())
    await hand.complete(await hand.get(wk.TaskWork))
    answer = await hand.commit(work, c.CompleteWorkflow(result=Raw(b"7")), base_seq=2)

    assert answer.closed
    assert 7 == await handle.result(timeout=10)


async def test_the_end_takes_everything_with_it(running, hand):
    """Timers and tasks of the same and of earlier turns are gone; the runner of a task is told."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    timer = c.StartTimer(timer_no=1, fire_at=running._clock() + 60 * SECOND)
    await hand.commit(work, task_command(), timer)
    task = await hand.get(wk.TaskWork)
    answer = await hand.commit(work, task_command(2), c.CompleteWorkflow(), base_seq=3)

    assert answer.closed
    assert [] == await handle.pending_tasks()
    assert [] == await handle.pending_timers()
    assert handle.id == (await hand.get(wk.ExecutionEnded)).execution_id
    with pytest.raises(StaleAttempt):
        await hand.complete(task)


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("base_seq", {"base_seq": 99}),
        ("commands", {"turns": (c.Turn(up_to=1, commands=(c.CompleteWorkflow(), task_command())),)}),
        ("steps", {"turns": (c.Turn(up_to=1, commands=(c.CompleteWorkflow(),)),), "steps": (step(1, 1),)}),
        ("after_steps", {"steps": (step(1, 1),), "after_steps": c.Turn(up_to=99)}),
    ],
)
async def test_a_commit_that_can_not_be_right_is_refused_whole(running, hand, field, options):
    """Beyond the history, after the end, ahead of what is there: nothing of it is recorded, the lease stays."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    with pytest.raises(InvalidRequest) as refused:
        await hand.commit(work, **options)

    assert field == refused.value.field
    assert ["WORKFLOW_STARTED"] == await types(handle)
    assert (await hand.commit(work, waiting_for=ON_SIGNAL)).released


# --- stuck ------------------------------------------------------------------------------------------------------------


async def park(hand: Hand, work: wk.TurnWork, build: str = "b1") -> None:
    reason = StuckReason(code="nondeterminism", message="other code", build=build)
    await hand.workers.park_turn(
        wk.ParkTurn(org="default", execution_id=work.execution_id, token=work.token, reason=reason)
    )


async def test_a_parked_execution_is_tried_again_by_the_same_code_after_a_while(running, hand, clock):
    """Not at once, which would be a storm; a signal meanwhile does not wake it."""
    handle = await start(running)
    await park(hand, await hand.get(wk.TurnWork))

    assert Status.STUCK == await handle.status()
    await handle.signal("go")
    for _ in range(14):
        clock.advance(20)
        assert await hand.nothing_more()
        await running.recover()
    assert await hand.nothing_more()
    clock.advance(21)
    await hand.beat()
    await running.recover()
    assert handle.id == (await hand.get(wk.TurnWork)).execution_id


async def test_other_code_may_try_at_once(running, hand):
    """A session with another build of the kind gets a parked execution when it registers."""
    handle = await start(running)
    await park(hand, await hand.get(wk.TurnWork))
    fixed = await Hand(running, "fixed").register(build="b2")
    work = await fixed.get(wk.TurnWork)

    assert handle.id == work.execution_id
    assert (await fixed.commit(work, waiting_for=ON_SIGNAL)).released
    assert (await handle.describe()).stuck is None


# --- tasks ------------------------------------------------------------------------------------------------------------


async def scheduled(running: Engine, hand: Hand, **options: Any) -> tuple[Any, wk.TaskWork]:
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    await hand.commit(work, task_command(**options), waiting_for=(Wait("task", "t", 1),))
    return handle, await hand.get(wk.TaskWork)


async def test_a_report_counts_once(running, hand):
    """The second report of the same attempt is refused; one outcome is recorded."""
    handle, task = await scheduled(running, hand)
    await hand.complete(task, "1")
    with pytest.raises(StaleAttempt, match="attempt 1 of task 1") as refused:
        await hand.complete(task, "2")
    with pytest.raises(StaleAttempt):
        await hand.fail(task)

    assert "stale_attempt" == refused.value.code
    assert [b"1"] == [bytes(event.body.result) for event in await handle.history() if event.type == "TASK_COMPLETED"]


@pytest.mark.parametrize("token", [Token(2, 0), Token(1, 0)])
async def test_a_report_needs_its_token(running, hand, token):
    """Attempt number and random part."""
    _, task = await scheduled(running, hand)
    with pytest.raises(StaleAttempt):
        await hand.complete(task, token=token)
    await hand.complete(task)


async def test_a_lost_session_loses_its_attempts(running, hand, clock):
    """Another session gets the next attempt at once; the late report of the first is refused."""
    handle, task = await scheduled(running, hand)
    clock.advance(31)
    other = await Hand(running, "other").register()
    await running.recover()
    again = await other.get(wk.TaskWork)

    assert 2 == again.token.epoch
    with pytest.raises(StaleAttempt):
        await hand.complete(task, "1")
    await other.complete(again, "2")
    assert [b"2"] == [bytes(event.body.result) for event in await handle.history() if event.type == "TASK_COMPLETED"]


async def test_a_released_task_counts_no_attempt(running, hand):
    """Handed back at shutdown: the next worker runs the same attempt number, with another random part."""
    _, task = await scheduled(running, hand, retry=RetryPolicy(max_attempts=1))
    await hand.workers.drain("hand")
    other = await Hand(running, "other").register()
    await hand.workers.release(
        wk.ReleaseWork(org="default", session="hand", tasks=((task.execution_id, task.task_no, task.token),))
    )
    again = await other.get(wk.TaskWork)

    assert task.token.epoch == again.token.epoch
    assert task.token.nonce != again.token.nonce
    with pytest.raises(StaleAttempt):
        await hand.complete(task)


async def test_a_timed_out_attempt_is_stale(running, hand, clock):
    """Its runner is told to stop, a heartbeat says so too, and the next attempt follows."""
    timeouts = TaskTimeouts(start_to_close_s=10.0)
    _, task = await scheduled(running, hand, timeouts=timeouts, retry=RetryPolicy(initial_interval_s=0.0))
    assert () == (await hand.beat(task)).stale
    clock.advance(11)
    await running.recover()
    stop = await hand.get(wk.TaskStop)
    again = await hand.get(wk.TaskWork)

    assert (task.execution_id, 1, 1, "timed_out") == (stop.execution_id, stop.task_no, stop.attempt, stop.reason)
    assert 2 == again.token.epoch
    assert ((task.execution_id, 1, 1),) == (await hand.beat(task, again)).stale


async def test_a_cancelled_task_is_stale(running, hand):
    """Cancelled by its program: the row is gone, the runner is told, the report refused."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    await hand.commit(work, task_command())
    task = await hand.get(wk.TaskWork)
    await hand.commit(work, c.CancelTask(task_no=1), base_seq=2, up_to=2)
    stop = await hand.get(wk.TaskStop)

    assert "cancelled" == stop.reason
    assert [] == await handle.pending_tasks()
    with pytest.raises(StaleAttempt):
        await hand.complete(task)


# --- timers -----------------------------------------------------------------------------------------------------------


async def test_a_timer_fires_once(running, hand, clock):
    """However many passes look for due timers at the same time."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    fire_at = clock() + 10 * SECOND
    await hand.commit(work, c.StartTimer(timer_no=1, fire_at=fire_at), waiting_for=(Wait("timer", "sleep", 1),))
    assert 0 == (await running.recover()).timers_fired
    clock.advance(10)
    await asyncio.gather(*(running._local.upkeep.run_due() for _ in range(10)))

    assert 1 == (await types(handle)).count("TIMER_FIRED")
    assert [] == await handle.pending_timers()


async def test_a_cancelled_timer_never_fires(running, hand, clock):
    """Its row is gone with the commit that cancels it."""
    handle = await start(running)
    work = await hand.get(wk.TurnWork)
    await hand.commit(work, c.StartTimer(timer_no=1, fire_at=clock() + 10 * SECOND))
    await hand.commit(work, c.CancelTimer(timer_no=1), base_seq=2, up_to=2)
    clock.advance(11)
    await running.recover()

    assert "TIMER_FIRED" not in await types(handle)
    assert [] == await handle.pending_timers()


async def test_event_times_never_go_back(running, hand, clock):
    """Whatever the clock does, the history is in order."""
    handle = await start(running)
    for seconds in (5, -60, 3, -3600):
        clock.advance(seconds)
        await handle.signal("go")
    times = [event.at for event in await handle.history()]

    assert sorted(times) == times
