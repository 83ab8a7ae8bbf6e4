"""The account of the chaos run: a sound run has nothing against it, and whatever is broken in it is found."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from holdfast import Engine
from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import State
from holdfast.model.values import Failure
from tests.conftest import QUICK, until
from verification.chaos import checker
from verification.chaos.app import TASKS, WORKFLOWS, Book, Everywhere, FileLedger
from verification.chaos.books import Body, Called, read_books
from verification.chaos.caller import Caller
from verification.chaos.nemesis import Hit
from verification.chaos.run import AFTER_US, NEEDED, Run, missing
from verification.invariants import Record, read
from verification.simulation import programs
from verification.simulation.programs import ATTEMPTS

Break = Callable[[Run], Run]

OPS = [["step", "s1", 0, 0], ["receive", "a"], ["sleep", 0.01], ["broadcast", "x"]]


@pytest.fixture
async def sound(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A small run with something of most kinds in it, in this process, without a fault."""
    monkeypatch.setattr(programs, "LEDGER", Everywhere(FileLedger(Book(tmp_path / "worker1-1.ledger"))))
    async with Engine(database_url, workflows=WORKFLOWS, tasks=TASKS, config=QUICK) as engine:
        caller = Caller(engine.client, Book(tmp_path / "caller1.calls"), "1", "caller1", asyncio.Event())
        await _call_all(caller, engine)
        await until(lambda: _all_closed(engine))
        records = await read(engine.storage)
        for record in records[:3]:
            await caller.give("read", execution_id=record.execution_row.id)
        dead = await engine.storage.dead_letters("default", limit=1_000)
    return Run(
        records=records,
        before=[records],
        committed={record.execution_row.id: (record.history[0].at, record.history[-1].at) for record in records},
        dead=dead,
        books=read_books(tmp_path),
        hits=[],
        sent_away=set(),
        whole_at=0,
        whole_since=0,
        stalls=[],
    )


async def _call_all(caller: Caller, engine: Engine) -> None:
    async def start(kind: str, workflow_id: str, given: Any, limit: float | None = None) -> str:
        await caller.give("start", kind=kind, workflow_id=workflow_id, input=given, limit=limit)
        return (await engine.client.find_workflow(workflow_id)).id

    for item in ("1", "2", "3", "4", "5", "6", "end"):
        await caller.give("signal_with_start", workflow_id="bag-1", name="item", value=item)
    await start("transfer", "transfer-1", {"from": "anne", "to": "bert", "amount": 5, "refused": True, "sleep": 0})
    await start("errand", "errand-1", {"what": "chores", "delay": 0.0, "fails": 1})
    await start("errand", "errand-2", {"what": "parent", "child": "fail", "limit": 5.0})
    promise = await start("errand", "errand-3", {"what": "promise", "limit": 60.0})
    late = await start("errand", "errand-4", {"what": "never"}, 60.0)
    planned = await start("plan", "plan-1", {"ops": OPS, "log": []})
    await until(lambda: _waits(engine, promise, "promise"))
    await caller.give("settle", workflow_id="errand-3", name="p", value="yes", early=False)
    await caller.give("reject", workflow_id="errand-3", name="p", value="no", early=False)
    await caller.give("cancel", execution_id=late)
    await caller.give("signal", execution_id=planned, name="a", value="given")
    await until(lambda: _waits(engine, planned, "broadcast"))
    await caller.give("broadcast", name="x")


async def _waits(engine: Engine, key: str, kind: str) -> bool:
    execution_row = (await engine.storage.executions("default", [key]))[key]
    return any(wait.kind == kind for wait in execution_row.waiting_for)


async def _all_closed(engine: Engine) -> bool:
    return all([not view.status.is_open async for view in engine.client.iter_workflows()])


# --- breaking -----------------------------------------------------------------------------------------------------


def _change(run: Run, kind: type[e.EventBody], change: Callable[[Any], e.EventBody | None], only: str = "") -> Run:
    """The first such event, in executions of this kind, is another one, or is missing."""
    records = list(run.records)
    for index, record in enumerate(records):
        for place, event in enumerate(record.history):
            if type(event.body) is kind and only in {"", record.execution_row.kind}:
                body = change(event.body)
                changed = [] if body is None else [HistoryEvent(event.seq, event.at, body)]
                history = [*record.history[:place], *changed, *record.history[place + 1 :]]
                records[index] = _with(record, history=history)
                return replace(run, records=records)
    raise AssertionError(f"there is no {kind.__name__}")


def _with(record: Record, **fields: Any) -> Record:
    kept = {name: getattr(record, name) for name in Record.__struct_fields__}
    return Record(**kept | fields)


def _called(run: Run, *what: str) -> Called:
    return next(called for called in run.books.of(*what) if called.answers)


def _bodies(run: Run, label: str) -> list[Body]:
    """All runs of the task or step that has this label, as they are in the books."""
    for bodies in (*run.books.tasks.values(), *run.books.steps.values()):
        if bodies[0].label == label:
            return bodies
    raise AssertionError(f"{label} never ran")


def lose_a_signal(run: Run) -> Run:
    return _change(run, e.SignalReceived, lambda _: None, "plan")


def take_a_refused_signal(run: Run) -> Run:
    called = _called(run, "signal")
    called.answers, called.refused = [], "not_found"
    return run


def receive_an_unknown_signal_twice(run: Run) -> Run:
    called = _called(run, "signal")
    called.answers = []
    (record,) = (record for record in run.records if record.execution_row.kind == "plan")
    (event,) = (event for event in record.history if isinstance(event.body, e.SignalReceived))
    history = [*record.history, HistoryEvent(len(record.history) + 1, event.at, event.body)]
    return replace(
        run, records=[*(other for other in run.records if other is not record), _with(record, history=history)]
    )


def let_a_signal_overtake(run: Run) -> Run:
    first, second, *_ = run.books.of("signal_with_start")
    first.invoked_at, second.answered_at = 20, 10
    return run


def take_signals_in_another_order(run: Run) -> Run:
    return _change(run, e.WorkflowCompleted, lambda body: _result(body, lambda items: [*items[1:], items[0]]), "bag")


def leave_a_signal_without_a_dead_letter(run: Run) -> Run:
    return _change(run, e.WorkflowCompleted, lambda body: _result(body, lambda items: items[:-1]), "bag")


def _result(body: Any, change: Callable[[Any], Any]) -> e.EventBody:
    made: e.EventBody = structs.replace(
        body, result=msgspec.Raw(msgspec.json.encode(change(msgspec.json.decode(body.result))))
    )
    return made


def record_what_no_body_returned(run: Run) -> Run:
    return _change(run, e.TaskCompleted, lambda body: structs.replace(body, result=msgspec.Raw(b'"made up"')))


def record_another_attempts_result(run: Run) -> Run:
    return _change(run, e.TaskCompleted, lambda body: structs.replace(body, attempt=1), "errand")


def fail_by_itself(run: Run) -> Run:
    failure = Failure(type="LookupError")
    return _change(run, e.TaskFailed, lambda body: structs.replace(body, failure=failure))


def begin_an_attempt_twice(run: Run) -> Run:
    bodies = _bodies(run, "c1")
    bodies.append(replace(bodies[-1], value="other", process="worker2-1"))
    return run


def begin_an_attempt_too_early(run: Run) -> Run:
    first, second = _bodies(run, "c1")
    assert first.failed_at is not None, "it is made to fail once"
    second.began_at = first.failed_at - 1
    return run


def try_again_what_had_returned(run: Run) -> Run:
    bodies = _bodies(run, "c1")
    bodies.append(replace(bodies[-1], attempt=3, began_at=bodies[-1].began_at + 1))
    return run


def try_too_often(run: Run) -> Run:
    bodies = _bodies(run, "c1")
    bodies.append(replace(bodies[-1], attempt=ATTEMPTS + 1, began_at=bodies[-1].began_at + 1))
    return run


def run_what_nobody_asked_for(run: Run) -> Run:
    run.books.tasks["nobody", 1] = _bodies(run, "c1")
    return run


def run_a_step_again(run: Run) -> Run:
    bodies = _bodies(run, "s1")
    bodies.append(replace(bodies[-1], began_at=bodies[-1].began_at + 1))
    return run


def run_a_failing_step_too_often(run: Run) -> Run:
    bodies = _bodies(run, "s1")
    bodies[:0] = [replace(bodies[0], ended_at=None, began_at=bodies[0].began_at - number) for number in (1, 2, 3)]
    return run


def fire_a_timer_late(run: Run) -> Run:
    (record,) = (record for record in run.records if record.execution_row.kind == "plan")
    (fired,) = (event.seq for event in record.history if isinstance(event.body, e.TimerFired))
    later = [HistoryEvent(event.seq, event.at + 3_000_000, event.body) for event in record.history[fired - 1 :]]
    history = [*record.history[: fired - 1], *later]
    return replace(
        run, records=[*(other for other in run.records if other is not record), _with(record, history=history)]
    )


def settle_a_promise_twice(run: Run) -> Run:
    run.books.of("reject")[0].answers[0]["already_resolved"] = False
    return run


def tell_another_settlement(run: Run) -> Run:
    run.books.of("reject")[0].answers[0]["value"] = "no"
    return run


def give_a_program_another_settlement(run: Run) -> Run:
    def change(body: Any) -> e.EventBody:
        return _result(body, lambda seen: ["RESOLVED", "no"] if seen[0] == "RESOLVED" else seen)

    for record in run.records:
        end = record.history[-1]
        if isinstance(end.body, e.WorkflowCompleted) and b"RESOLVED" in bytes(end.body.result):
            history = [*record.history[:-1], HistoryEvent(end.seq, end.at, change(end.body))]
            others = [other for other in run.records if other is not record]
            return replace(run, records=[*others, _with(record, history=history)])
    raise AssertionError("there is none")


def leave_a_run_open(run: Run) -> Run:
    record = run.records[0]
    return replace(
        run,
        records=[
            _with(record, execution_row=structs.replace(record.execution_row, state=State.OPEN)),
            *run.records[1:],
        ],
    )


def answer_a_start_with_another_run(run: Run) -> Run:
    _called(run, "start").answers[0]["workflow_execution_id"] = run.records[0].execution_row.id
    return run


def begin_two_runs_by_one_start(run: Run) -> Run:
    key = _called(run, "start").id
    return _change(run, e.WorkflowStarted, lambda body: structs.replace(body, request_id=key), "bag")


def open_two_runs_at_once(run: Run) -> Run:
    first, second = (record.execution_row.id for record in run.records if record.execution_row.kind == "bag")
    (began, ended), (_, later) = run.committed[first], run.committed[second]
    return replace(run, committed={**run.committed, first: (began, ended), second: (ended - 1, later)})


def lose_a_cancellation(run: Run) -> Run:
    return _change(run, e.CancelRequested, lambda body: structs.replace(body, reason="another"))


def change_a_program(run: Run) -> Run:
    return _change(run, e.StepCompleted, lambda body: structs.replace(body, name="another"))


def lose_money(run: Run) -> Run:
    bodies = next(bodies for bodies in run.books.tasks.values() if bodies[0].label == "anne -5")
    bodies[0].label = "anne -4"
    return run


def answer_otherwise_the_second_time(run: Run) -> Run:
    called = _called(run, "signal")
    called.answers.append(called.answers[0] | {"signal_event_sequence": 99})
    return run


def take_another_call_with_the_same_key(run: Run) -> Run:
    _called(run, "signal").complaints.append("another call with its key was taken")
    return run


def take_back_what_was_read(run: Run) -> Run:
    _called(run, "read").answers[0]["digest"] = "another"
    return run


def reach_fewer_than_was_said(run: Run) -> Run:
    _called(run, "broadcast").answers[0]["delivered"] += 1
    return run


def change_what_was_read_before(run: Run) -> Run:
    read_before = _change(run, e.StepCompleted, lambda body: structs.replace(body, name="another")).records
    return replace(run, before=[read_before])


def spoil_a_history(run: Run) -> Run:
    record = run.records[0]
    return replace(run, records=[_with(record, history=[]), *run.records[1:]])


BREAKS: Sequence[tuple[str, Break]] = (
    ("I06", lose_a_signal),
    ("I07", take_a_refused_signal),
    ("I07", receive_an_unknown_signal_twice),
    ("I08", let_a_signal_overtake),
    ("I09", take_signals_in_another_order),
    ("I06", leave_a_signal_without_a_dead_letter),
    ("I11", record_what_no_body_returned),
    ("I11", record_another_attempts_result),
    ("I11", fail_by_itself),
    ("I11", begin_an_attempt_twice),
    ("I11", begin_an_attempt_too_early),
    ("I12", try_again_what_had_returned),
    ("I12", try_too_often),
    ("I11", run_what_nobody_asked_for),
    ("I12", run_a_step_again),
    ("I12", run_a_failing_step_too_often),
    ("I13", fire_a_timer_late),
    ("I14", settle_a_promise_twice),
    ("I14", tell_another_settlement),
    ("I14", give_a_program_another_settlement),
    ("I16", leave_a_run_open),
    ("I17", answer_a_start_with_another_run),
    ("I17", begin_two_runs_by_one_start),
    ("I17", open_two_runs_at_once),
    ("F27", lose_a_cancellation),
    ("I18", change_a_program),
    ("I21", lose_money),
    ("I23", answer_otherwise_the_second_time),
    ("I23", take_another_call_with_the_same_key),
    ("I25", take_back_what_was_read),
    ("I26", reach_fewer_than_was_said),
    ("I01", change_what_was_read_before),
    ("CHECK", spoil_a_history),
)


async def test_each_thing_that_is_broken_is_found(sound: Run):
    """One after the other, each in the sound run, which has nothing against it."""
    assert [] == [str(violation) for violation in checker.judge(sound)]

    for invariant, break_something in BREAKS:
        broken = break_something(replace(sound, books=deepcopy(sound.books), data=Counter()))
        found = {violation.invariant for violation in checker.judge(broken)}
        assert invariant in found, f"{break_something.__name__}: {found}"


async def test_what_a_fault_may_have_caused_is_not_blamed(sound: Run):
    """A body that ran again after its process was hit, for as long as that can matter, and only if it was that one."""
    began = _bodies(sound, "s1")[0].began_at
    run_a_step_again(sound)

    def with_hit(at: int, *names: str) -> list[str]:
        hit = Hit("worker killed", at, at, frozenset(names))
        return [violation.invariant for violation in checker.judge(replace(sound, hits=[hit]))]

    assert [] == with_hit(began - AFTER_US + 1, "worker1")
    assert ["I12"] == with_hit(began - AFTER_US - 1, "worker1")
    assert ["I12"] == with_hit(began + 1_000_000, "worker1")
    assert ["I12"] == with_hit(began, "worker2")


async def test_attempts_with_a_time_limit_may_overlap(sound: Run):
    """The next one begins when the first is out of time, whether that has heard of it or not."""
    begin_an_attempt_too_early(sound)
    sound = _change(sound, e.TaskScheduled, lambda body: structs.replace(body, kind="deaf"), "errand")

    assert "I11" not in {violation.invariant for violation in checker.judge(sound)}


async def test_it_is_counted_how_much_there_was(sound: Run):
    """What a run had nothing of is named: its check has shown nothing."""
    checker.judge(sound)

    assert 1 == sound.data["I11 attempts after a failed one"]
    assert 1 == sound.data["I14 resolved"]
    assert 2 == sound.data["I15 children failed"] + sound.data["I04 continued"]
    assert 3 == sound.data["I25 reads"]
    lacking = {violation.text for violation in missing(sound.data)}
    assert "nothing to judge: I14 rejected" in lacking
    assert "nothing to judge: I14 resolved" not in lacking
    assert len(NEEDED) == len(missing(Counter()))
