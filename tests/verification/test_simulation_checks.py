"""The account of a scenario finds each planted violation: in what bodies did, in what callers were told, in what was
left unread; and is silent about a sound one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from holdfast.contract import executions as ex
from holdfast.contract import messages as ms
from holdfast.contract.calls import UpdateOutcome, UpdateStatus, UpdateTicket
from holdfast.model import events as e
from holdfast.model.executions import DeadLetter, Execution, RequestRow, State
from holdfast.model.messages import PromiseState
from holdfast.model.values import Failure
from verification.invariants import Record, Violation
from verification.memory import MemoryDatabase
from verification.simulation.answers import check_answers
from verification.simulation.bodies import Trouble, check_bodies
from verification.simulation.checking import Circumstances, check_all
from verification.simulation.ledger import Attempt, Call, Ledger
from verification.simulation.letters import check_letters
from verification.simulation.node import ORG
from verification.simulation.programs import ATTEMPTS, SLOW
from verification.simulation.redone import Lines, check_redone

ID = "execution-1"
SECOND = 1_000_000
LEASE = 6 * SECOND
CALM = Circumstances(disruptions=0, handed_back=False, troubles=(), calm_since=0, replayed=True)


def raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


def started(*ops: list[Any], **fields: Any) -> e.WorkflowStarted:
    return e.WorkflowStarted(kind="plan", workflow_id="w", input=raw({"ops": ops, "log": []}), **fields)


def signal(number: str, **fields: Any) -> e.SignalReceived:
    return e.SignalReceived(signal_name="a", signal_value=raw(number), request_id=number, **fields)


def record(*bodies: e.EventBody, state: State = State.COMPLETED, **fields: Any) -> Record:
    history = [e.HistoryEvent(seq, seq * 50, body) for seq, body in enumerate(bodies, start=1)]
    whole: dict[str, Any] = {
        "id": ID,
        "org": ORG,
        "workflow_id": "w",
        "kind": "plan",
        "version": "1",
        "queue": "default",
        "priority": 0,
        "state": state,
        "created_at": 0,
        "updated_at": 0,
        "last_seq": len(history),
        "signal_count": sum(isinstance(body, e.SignalReceived) for body in bodies),
        **fields,
    }
    return Record(execution_row=Execution(**whole), history=history)


def kinds(found: Iterable[Violation]) -> list[str]:
    return sorted(violation.invariant for violation in found)


def ledger(*calls: Call) -> Ledger:
    made = Ledger(lambda: 0)
    made.calls.extend(calls)
    return made


# --- bodies -------------------------------------------------------------------------------------------------------


def run(attempt: int, began_s: float, ended_s: float | None, node: str = "n1", label: str = "t1") -> Attempt:
    ended_at = None if ended_s is None else int(ended_s * SECOND)
    return Attempt(ID, 1, label, attempt, f"v{attempt}", int(began_s * SECOND), ended_at, node)


def of_task(*runs: Attempt, troubles: tuple[Trouble, ...] = (), handed_back: bool = False) -> list[str]:
    made = ledger()
    made.attempts[ID, 1] = list(runs)
    return kinds(check_bodies(Lines([]), made, troubles, disruptions=len(troubles), handed_back=handed_back))


def test_a_task_that_is_tried_again_after_a_failure_is_sound():
    assert [] == of_task(run(1, 0, None), run(2, 1, 2))


def test_an_attempt_that_starts_while_another_runs():
    """I11: nobody was lost, so there was no reason."""
    assert ["I11"] == of_task(run(1, 0, 3), run(2, 1, 2))


def test_a_task_that_is_run_again_though_it_has_returned():
    """I12: its result was thrown away."""
    assert ["I12"] == of_task(run(1, 0, 1), run(2, 2, 3))


@pytest.mark.parametrize("node", ["n1", ""])
def test_a_worker_that_was_lost_is_a_reason(node: str):
    """Its own trouble, or everybody's, until its lease is over."""
    trouble = Trouble(node, SECOND, SECOND, LEASE)

    assert [] == of_task(run(1, 0, 9), run(2, 8, 10, "n2"), troubles=(trouble,))
    assert ["I11"] == of_task(run(1, 0, 9), run(2, 0.5, 10, "n2"), troubles=(trouble,))
    assert ["I12"] == of_task(run(1, 9, 10), run(2, 11, 12, "n2"), troubles=(trouble,))


def test_the_trouble_of_another_node_is_none():
    """I12: whoever ran it was well."""
    assert ["I12"] == of_task(run(1, 0, 1), run(2, 2, 3), troubles=(Trouble("n3", 0, SECOND, LEASE),))


def test_what_runs_into_its_time_limit_is_run_again():
    assert [] == of_task(run(1, 0, 3, label=f"{SLOW}1"), run(2, 1, 2, label=f"{SLOW}1"))


def test_an_attempt_that_starts_twice():
    """I11: unless it may have been handed back."""
    assert ["I11"] == of_task(run(1, 0, None), run(1, 1, None))
    assert [] == of_task(run(1, 0, None), run(1, 1, None), handed_back=True)


def test_more_attempts_than_allowed():
    """I12."""
    assert ["I12"] == of_task(*(run(number, number, None) for number in range(1, ATTEMPTS + 2)))


@pytest.mark.parametrize(("value", "attempt"), [("v2", 1), ("v1", 2), ("other", 1)])
def test_a_result_that_its_attempt_has_not_returned(value: str, attempt: int):
    """I11."""
    made = ledger()
    made.attempts[ID, 1] = [run(1, 0, 1)]
    history = record(started(), e.TaskCompleted(task_no=1, result=raw(value), attempt=attempt))

    assert ["I11"] == kinds(check_bodies(Lines([history]), made, (), disruptions=0, handed_back=False))


def test_a_step_that_nobody_has_run():
    """I11."""
    history = record(started(), e.StepCompleted(up_to=1, step_no=1, name="s", result=raw("v1")))

    assert ["I11"] == kinds(check_bodies(Lines([history]), ledger(), (), disruptions=0, handed_back=False))


def test_a_step_that_has_ended_twice():
    """I12: without a fault once is enough."""
    made = ledger()
    made.steps[ID, "s"] = [run(1, 0, 1), run(2, 1, 2)]

    assert ["I12"] == kinds(check_bodies(Lines([]), made, (), disruptions=0, handed_back=False))
    assert [] == kinds(check_bodies(Lines([]), made, (), disruptions=1, handed_back=False))


# --- what was left unread -----------------------------------------------------------------------------------------

FAILED = record(
    started(["receive", "a"], ["fail", "f"]),
    signal("r1"),
    signal("r2"),
    e.WorkflowFailed(up_to=3, failure=Failure(type="Planned", message="f")),
    state=State.FAILED,
)
TIMED_OUT = record(
    started(["receive", "a"], ["receive", "b"]),
    signal("r1"),
    e.TurnCompleted(up_to=2),
    signal("r2"),
    e.WorkflowTimedOut(expires_at=200),
    state=State.TIMED_OUT,
)


def of_letters(closed: Record, *seqs: int, reason: str = "closed") -> list[str]:
    letters = {(ID, seq): DeadLetter(execution_id=ID, seq=seq, org=ORG, reason=reason, at=0) for seq in seqs}
    return kinds(check_letters(letters, Lines([closed]), {ID: [closed]}))


@pytest.mark.parametrize(("closed", "unread"), [(FAILED, 3), (TIMED_OUT, 4)], ids=["failed", "timed out"])
def test_what_was_left_unread_is_a_dead_letter(closed: Record, unread: int):
    """I06 if it is none, I07 if what the program has read is one, too."""
    assert [] == of_letters(closed, unread)
    assert ["I06"] == of_letters(closed)
    assert ["I07"] == of_letters(closed, 2, unread)


def test_a_dead_letter_without_a_reason():
    """I06."""
    assert ["I06"] == of_letters(FAILED, 3, reason="")


def test_a_dead_letter_that_is_no_signal():
    """I06."""
    assert ["I06"] == of_letters(FAILED, 3, 1)


def test_what_a_run_leaves_is_in_the_next_one():
    """I06 if it is lost, I07 if the next one gets what was read."""
    before = record(
        started(["receive", "a"], ["continue"], ["receive", "b"]),
        signal("r1"),
        signal("r2"),
        e.WorkflowContinued(
            up_to=3,
            new_execution_id="next",
            kind="plan",
            version="1",
            input=raw({"ops": [["receive", "b"]], "log": [["got", "a", "r1"]]}),
        ),
        state=State.CONTINUED,
        successor="next",
    )

    def following(*taken: int) -> list[str]:
        carried = [signal(f"r{seq}", carried_from=seq) for seq in taken]
        after = record(started(continued_from=ID), *carried, state=State.OPEN, id="next")
        return kinds(check_letters({}, Lines([before, after]), {"next": [before, after]}))

    assert [] == following(3)
    assert ["I06"] == following()
    assert ["I07"] == following(2, 3)


# --- callers ------------------------------------------------------------------------------------------------------


def call(what: str, number: str = "r1", *answers: Any, **fields: Any) -> Call:
    made = Call(what, number, "w", "a", fields.pop("invoked_at", 0), list(answers), execution_id=ID)
    return replace(made, **fields)


def of_calls(*calls: Call, closed: Iterable[Record] = (), keys: Iterable[str] | None = None) -> list[str]:
    """`keys`: the idempotency keys that are kept; by default those of all calls that were answered."""
    database = MemoryDatabase()
    records = list(closed)
    for each in records:
        database.execution_rows[each.execution_row.id] = each.execution_row
        database.dead_letters.update(dead(*((each.execution_row.id, event.seq) for event in each.history)))
    kept = [each.request_id for each in calls if each.answers] if keys is None else keys
    for key in kept:
        name = f"update:{ID}:{key}" if any(each.what == "update" for each in calls) else key
        row = RequestRow(org=ORG, request_id=name, fingerprint="", answer=b"", created_at=0)
        database.requests[ORG, name] = row
    return kinds(
        check_answers(database, ledger(*calls), {each.execution_row.id: [each] for each in records}, Lines(records))
    )


RECEIVED = ex.SignalResponse(2)


def completed(*bodies: e.EventBody, log: list[Any] | None = None) -> Record:
    return record(started(), *bodies, e.WorkflowCompleted(up_to=1, result=raw(log or [])))


def test_an_accepted_signal_is_received_once():
    """I06 if it is not; I07 if a refused one is."""
    assert [] == of_calls(call("signal", "r1", RECEIVED), closed=[completed(signal("r1"))])
    assert ["I06", "I19"] == of_calls(call("signal", "r1", RECEIVED), closed=[completed()])
    assert ["I07"] == of_calls(call("signal", "r1", refused="closed"), closed=[completed(signal("r1"))])


def test_signals_keep_the_order_in_which_they_were_answered():
    """I08: the first one's caller had his answer when the second one's asked."""
    first = call("signal", "r1", RECEIVED, returned_at=10)
    second = call("signal", "r2", RECEIVED, invoked_at=20, returned_at=30)
    meanwhile = replace(second, invoked_at=5)
    swapped = [completed(signal("r2"), signal("r1"))]

    assert ["I08"] == of_calls(first, second, closed=swapped)
    assert [] == of_calls(first, meanwhile, closed=swapped)


def test_what_a_program_takes_is_what_came():
    """I09: in the order in which it came."""
    came = signal("r1"), signal("r2")

    assert "I09" in of_calls(closed=[completed(*came, log=[["got", "a", "r2"]])])
    assert "I06" in of_calls(closed=[completed(*came, log=[["got", "a", "r1"], ["got", "a", "r2"]])])


RESOLVED = e.PromiseResolved(promise_no=1, name="p", value=raw("yes"))
REJECTED = e.PromiseRejected(promise_no=1, name="p", failure=Failure(type="No", message="no"))


def settled(value: str, *, first: bool = True) -> ms.SettleAnswer:
    return ms.SettleAnswer(
        promise_id=f"{ID}:p", state=PromiseState.RESOLVED, already_resolved=not first, value=raw(value)
    )


@pytest.mark.parametrize("body", [RESOLVED, REJECTED, e.PromiseTimedOut(promise_no=1, name="p")], ids=lambda b: b.TYPE)
def test_everybody_is_told_the_same_of_a_promise(body: e.EventBody):
    """I14: the history as well as all who wanted to settle it."""
    told = of_calls(call("settle", "r1", settled("other")), closed=[completed(body)])

    assert ["I14"] == told
    assert [] == of_calls(call("settle", "r1", settled("yes")), closed=[completed(RESOLVED)])


def test_a_promise_that_two_have_settled():
    """I14: only one was the first."""
    assert ["I14"] == of_calls(call("settle", "r1", settled("yes")), call("settle", "r2", settled("yes")))


@pytest.mark.parametrize(
    ("entry", "invariant"),
    [
        (["promise", "p", "no"], "I14"),
        (["promise", "q", "yes"], "I14"),
        (["rejected", "p", "promise 'p' was rejected: No: no"], "I14"),
        (["late", "p"], "I14"),
        (["step", "v1"], "I11"),
        (["task", "v1"], "I11"),
        (["child", []], "I11"),
    ],
    ids=str,
)
def test_a_program_that_was_given_something_else(entry: list[Any], invariant: str):
    """What it says at its end is compared with what its history has for it."""
    assert [invariant] == of_calls(closed=[completed(RESOLVED, log=[entry])])
    assert [] == of_calls(closed=[completed(RESOLVED, log=[["promise", "p", "yes"]])])


def test_two_answers_to_one_request():
    """I23: whatever was answered first is answered again."""
    one, other = ex.StartAnswer(ID, "w", True), ex.StartAnswer("other", "w", True)

    assert ["I23"] == of_calls(call("start", "r1", one, other), closed=[completed()])
    assert ["I23"] == of_calls(call("start", "r1", one, refused_again="mismatch"), closed=[completed()])


def test_a_start_that_has_begun_nothing():
    """I17."""
    assert ["I17"] == of_calls(call("start", "r1", ex.StartAnswer(ID, "w", True)))


def test_a_key_is_kept_with_its_effect():
    """I19: not without, nor after a refusal, unless an earlier try may still have been done."""
    started_it = call("start", "r1", ex.StartAnswer(ID, "w", True))

    assert ["I19"] == of_calls(started_it, closed=[completed()], keys=[])
    assert ["I19"] == of_calls(call("settle", "r1", refused="not_found"), keys=["r1"])
    assert [] == of_calls(call("settle", "r1", refused="not_found", unheard=1), keys=["r1"])


def test_a_key_for_an_execution_that_is_not_there():
    """I19."""
    database = MemoryDatabase()
    row = RequestRow(org=ORG, request_id="r1", fingerprint="", answer=b"", created_at=0, execution_id=ID)
    database.requests[ORG, "r1"] = row

    assert ["I19"] == kinds(check_answers(database, ledger(), {}, Lines([])))


def test_an_end_that_the_history_does_not_know():
    """I27: whoever was told that he has ended it has."""
    assert ["I27"] == of_calls(call("terminate", "r1", ex.Changed(True)), closed=[completed()])


ASKED = (
    e.UpdateRequested(update_id="r1", update_name="add"),
    e.UpdateAccepted(up_to=2, update_id="r1"),
    e.UpdateCompleted(up_to=2, update_id="r1", result=raw("v1")),
)
TICKET = UpdateTicket(ID, "r1", 2)


def outcome(status: UpdateStatus, **fields: Any) -> UpdateOutcome:
    return UpdateOutcome(workflow_execution_id=ID, update_id="r1", status=status, **fields)


@pytest.mark.parametrize(
    ("told", "violated"),
    [
        (outcome(UpdateStatus.COMPLETED, result=raw("v1")), []),
        (outcome(UpdateStatus.COMPLETED, result=raw("v2")), ["I23"]),
        (outcome(UpdateStatus.REJECTED, failure=Failure(type="E", message="no")), ["I23"]),
        (outcome(UpdateStatus.FAILED, failure=Failure(type="E", code="execution_closed")), ["I23"]),
    ],
)
def test_what_is_told_of_an_update_is_what_came_of_it(told: UpdateOutcome, violated: list[str]):
    """I23."""
    assert violated == of_calls(call("update", "r1", TICKET, outcome=told), closed=[completed(*ASKED)])


def test_an_update_that_was_accepted_and_is_nowhere():
    """I06."""
    assert ["I06"] == of_calls(call("update", "r1", TICKET), closed=[completed()])
    assert ["I06"] == of_calls(call("update", "r1", refused="closed"), closed=[completed(*ASKED)])


# --- all together -------------------------------------------------------------------------------------------------


def test_an_execution_that_never_ends():
    """I16: whatever it waited for was given."""
    assert "I16" in kinds(check_all(MemoryDatabase(), ledger(), CALM, [record(started(), state=State.OPEN)]))


def test_a_history_that_its_program_did_not_make():
    """I18: played again, it asks for something else."""
    history = record(started(["sleep", 1.0]), e.WorkflowCompleted(up_to=1, result=raw([])))

    assert "I18" in kinds(check_all(MemoryDatabase(), ledger(), CALM, [history]))


def test_a_timer_that_fires_late():
    """I13: two seconds after it was due, when all is calm."""
    timer = (e.TimerStarted(up_to=1, timer_no=1, fire_at=0), e.TimerFired(timer_no=1))
    history = record(started(["sleep", 1.0]), *timer)
    late = Record(
        execution_row=history.execution_row, history=[*history.history[:2], e.HistoryEvent(3, 3 * SECOND, timer[1])]
    )

    assert "I13" in kinds(check_all(MemoryDatabase(), ledger(), CALM, [late]))
    calm_later = replace(CALM, calm_since=2 * SECOND)
    assert "I13" not in kinds(check_all(MemoryDatabase(), ledger(), calm_later, [late]))


def test_a_program_that_closed_over_what_it_had_not_seen():
    """I06: it has to look again."""
    history = record(started(), signal("r1"), e.WorkflowCompleted(up_to=1, result=raw([])))

    assert "I06" in kinds(check_all(MemoryDatabase(), ledger(), CALM, [history]))


# --- what was done again ------------------------------------------------------------------------------------------

AGAIN = "execution-2"
SOURCE = (started(), signal("r1"), signal("r2"), e.WorkflowTerminated(reason="x", successor=AGAIN))
RESET = e.WorkflowReset(from_execution_id=ID, event_seq=2, workflow_id="w", reason="r9")
FORK = e.WorkflowReset(from_execution_id=ID, event_seq=2, workflow_id="r9", fork=True)


def redo(what: str = "reset", *made: str, **fields: Any) -> Call:
    answers = [ex.StartAnswer(key, "w", True) for key in made or (AGAIN,)]
    return Call(what, "r9", "w", "", 0, answers=answers, **{"execution_id": ID, "known": 3, **fields})


def of_redone(call: Call, *tail: e.EventBody, source: tuple[e.EventBody, ...] = SOURCE, cut: int = 2) -> list[str]:
    before = record(*source, state=State.TERMINATED)
    after = record(*source[:cut], *tail, id=AGAIN)
    return kinds(check_redone(ledger(call), Lines([before, after])))


def test_a_reset_with_all_that_came_later_is_sound():
    assert [] == of_redone(redo(), RESET, signal("r2", carried_from=3))
    assert [] == of_redone(redo(reapply=False), RESET)
    assert [] == of_redone(redo("fork", known=2), FORK)


@pytest.mark.parametrize("tail", [(), (signal("r2", carried_from=2),), (signal("r2", carried_from=3),) * 2])
def test_a_reset_that_does_not_take_along_what_came_later_once(tail: tuple[e.EventBody, ...]):
    """I06."""
    assert ["I06"] == of_redone(redo(), RESET, *tail)


def test_a_fork_has_at_least_what_its_caller_had_seen():
    """I06: what came later may have come after the fork."""
    assert ["I06"] == of_redone(redo("fork"), FORK)


def test_a_reset_that_takes_along_what_it_was_to_leave_out():
    """I07."""
    assert ["I07"] == of_redone(redo(reapply=False), RESET, signal("r2", carried_from=3))


def test_an_update_that_was_refused_stays_so():
    """I06."""
    asked = e.UpdateRequested(update_id="u", update_name="add")
    refused = e.UpdateRejected(up_to=3, update_id="u", failure=Failure(type="No"))
    source = (started(), signal("r1"), asked, refused, SOURCE[-1])

    assert [] == of_redone(redo(), RESET, source=source)
    assert ["I06"] == of_redone(redo(), RESET, msgspec.structs.replace(asked, carried_from=3), source=source)


def test_a_child_whose_end_was_known_keeps_it():
    """I15: it is neither waited for again nor told otherwise."""
    born = e.ChildStarted(up_to=1, child_no=1, child_execution_id="c", kind="plan")
    done = e.ChildCompleted(child_no=1, child_execution_id="c", result=raw(1))
    source = (started(), born, done, SOURCE[-1])

    assert [] == of_redone(redo(), RESET, done, source=source)
    assert ["I15"] == of_redone(redo(), RESET, source=source)
    assert ["I15"] == of_redone(redo(), RESET, msgspec.structs.replace(done, result=raw(2)), source=source)


def test_a_request_makes_one_execution():
    """I23: neither two, nor another one than was answered, nor one if it was refused; and none that nobody wanted."""
    twice = [record(*SOURCE, state=State.TERMINATED)]
    twice += [record(*SOURCE[:2], RESET, signal("r2", carried_from=3), id=key) for key in (AGAIN, "execution-3")]
    later = signal("r2", carried_from=3)

    assert ["I23"] == kinds(check_redone(ledger(redo()), Lines(twice)))
    assert ["I23"] == of_redone(redo("reset", "another"), RESET, later)
    refused = Call("reset", "r9", "w", "", 0, refused="conflict", execution_id=ID)
    assert ["I23"] == of_redone(refused, RESET, later)
    refused.unheard = 1
    assert [] == of_redone(refused, RESET, later)
    assert ["I23"] == of_redone(Call("reset", "r8", "w", "", 0), RESET, later)


def test_the_past_is_that_of_the_execution_that_was_asked_for():
    """I03."""
    assert ["I03"] == of_redone(redo(execution_id="execution-0"), RESET, signal("r2", carried_from=3))


def test_what_went_to_the_next_one_is_no_dead_letter():
    """I07: it would be received twice. What was left out is one: I06."""
    before = record(*SOURCE, state=State.TERMINATED)
    end = e.WorkflowTerminated(reason="x")
    after = record(*SOURCE[:2], RESET, signal("r2", carried_from=3), end, id=AGAIN, state=State.TERMINATED)
    bare = record(*SOURCE[:2], RESET, end, id=AGAIN, state=State.TERMINATED)

    assert [] == kinds(check_letters(dead((AGAIN, 2), (AGAIN, 4)), Lines([before, after]), {}))
    assert ["I07"] == kinds(check_letters(dead((ID, 3), (AGAIN, 2), (AGAIN, 4)), Lines([before, after]), {}))
    assert [] == kinds(check_letters(dead((ID, 3), (AGAIN, 2)), Lines([before, bare]), {}))
    assert ["I06"] == kinds(check_letters(dead((AGAIN, 2)), Lines([before, bare]), {}))


def dead(*keys: tuple[str, int]) -> dict[tuple[str, int], DeadLetter]:
    return {key: DeadLetter(execution_id=key[0], seq=key[1], org=ORG, reason="x", at=0) for key in keys}
