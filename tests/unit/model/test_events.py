"""The stored form of every event type. These rows are in users' databases for ever."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec import Raw

from holdfast.errors import EventTooNew
from holdfast.model import events as e
from holdfast.model.values import Failure, RetryPolicy, Settlement, TaskTimeouts, Wait

FAILURE = Failure(
    type="ValueError", message="boom", traceback="tb", code="c", non_retryable=True, cause=Failure(type="KeyError")
)
FAILURE_JSON = (
    '{"type":"ValueError","message":"boom","traceback":"tb","code":"c","non_retryable":true,'
    '"cause":{"type":"KeyError"}}'
)

SETTLEMENT = Settlement(by="event", idempotency_key="i", event_id=7)
SETTLEMENT_JSON = '{"by":"event","idempotency_key":"i","event_id":7}'

# Every field set, none to its default. A change here is a change of the stored form: keep the old line, raise VERSION
# and add an upcaster.
FULL = [
    (
        e.WorkflowStarted(
            kind="k",
            version="2",
            workflow_id="w",
            queue="q",
            input=Raw(b'{"a":1}'),
            metadata={"m": "v"},
            request_id="r",
            parent_execution_id="p",
            child_no=2,
            depth=3,
            continued_from="c",
            expires_at=9,
            start_at=8,
            seed="s",
            event_id=6,
            born=4,
            had=(5, 6),
        ),
        (
            '{"kind":"k","version":"2","workflow_id":"w","queue":"q","input":{"a":1},"metadata":{"m":"v"},'
            '"request_id":"r","parent_execution_id":"p","child_no":2,"depth":3,"continued_from":"c","expires_at":9,'
            '"start_at":8,"seed":"s","event_id":6,"born":4,"had":[5,6]}'
        ),
    ),
    (
        e.SignalReceived(
            signal_name="s",
            signal_value=Raw(b"[1]"),
            request_id="r",
            sender="e",
            carried_from=7,
            redelivered_from="d",
        ),
        (
            '{"signal_name":"s","signal_value":[1],"request_id":"r","sender":"e","carried_from":7,'
            '"redelivered_from":"d"}'
        ),
    ),
    (e.TimerFired(timer_no=3), '{"timer_no":3}'),
    (
        e.TaskCompleted(task_no=2, result=Raw(b'"x"'), attempt=4, worker="w"),
        '{"task_no":2,"result":"x","attempt":4,"worker":"w"}',
    ),
    (
        e.TaskFailed(task_no=2, failure=FAILURE, attempt=4, timeout="heartbeat", worker="w"),
        f'{{"task_no":2,"failure":{FAILURE_JSON},"attempt":4,"timeout":"heartbeat","worker":"w"}}',
    ),
    (
        e.ChildCompleted(child_no=1, child_execution_id="c", result=Raw(b"1")),
        '{"child_no":1,"child_execution_id":"c","result":1}',
    ),
    (
        e.ChildFailed(child_no=1, child_execution_id="c", status="failed", failure=FAILURE),
        f'{{"child_no":1,"child_execution_id":"c","status":"failed","failure":{FAILURE_JSON}}}',
    ),
    (
        e.ExternalSignalDelivered(signal_no=1, target_execution_id="t", signal_event_sequence=4),
        '{"signal_no":1,"target_execution_id":"t","signal_event_sequence":4}',
    ),
    (e.ExternalSignalFailed(signal_no=1, failure=FAILURE), f'{{"signal_no":1,"failure":{FAILURE_JSON}}}'),
    (
        e.UpdateRequested(update_id="u", update_name="n", input=Raw(b"1"), carried_from=7),
        '{"update_id":"u","update_name":"n","input":1,"carried_from":7}',
    ),
    (
        e.PromiseResolved(promise_no=2, name="p", value=Raw(b'{"a":1}'), settled_by=SETTLEMENT),
        f'{{"promise_no":2,"name":"p","value":{{"a":1}},"settled_by":{SETTLEMENT_JSON}}}',
    ),
    (
        e.PromiseRejected(promise_no=2, name="p", failure=FAILURE, settled_by=SETTLEMENT),
        f'{{"promise_no":2,"name":"p","failure":{FAILURE_JSON},"settled_by":{SETTLEMENT_JSON}}}',
    ),
    (e.PromiseTimedOut(promise_no=2, name="p"), '{"promise_no":2,"name":"p"}'),
    (
        e.EventReceived(wait_no=2, key="k", event_id=7, data=Raw(b"[1]"), correlation="c"),
        '{"wait_no":2,"key":"k","event_id":7,"data":[1],"correlation":"c"}',
    ),
    (
        e.BroadcastReceived(wait_no=2, name="n", broadcast_id=7),
        '{"wait_no":2,"name":"n","broadcast_id":7}',
    ),
    (e.CancelRequested(reason="why"), '{"reason":"why"}'),
    (
        e.WorkflowReset(from_execution_id="f", event_seq=5, workflow_id="w", reason="why", fork=True),
        '{"from_execution_id":"f","event_seq":5,"workflow_id":"w","reason":"why","fork":true}',
    ),
    (e.WorkflowTerminated(reason="why", successor="s"), '{"reason":"why","successor":"s"}'),
    (e.WorkflowTimedOut(expires_at=9), '{"expires_at":9}'),
    (
        e.TaskScheduled(
            up_to=5,
            task_no=2,
            kind="k",
            input=Raw(b"[1]"),
            queue="q",
            priority=7,
            retry=RetryPolicy(
                initial_interval_s=2.0,
                backoff=3.0,
                max_interval_s=4.0,
                max_attempts=5,
                jitter=False,
                non_retryable=("X",),
            ),
            timeouts=TaskTimeouts(start_to_close_s=1.0, schedule_to_close_s=2.0, heartbeat_s=3.0),
            line="f.py:1",
        ),
        (
            '{"up_to":5,"task_no":2,"kind":"k","input":[1],"queue":"q","priority":7,'
            '"retry":{"initial_interval_s":2.0,"backoff":3.0,"max_interval_s":4.0,"max_attempts":5,"jitter":false,'
            '"non_retryable":["X"]},'
            '"timeouts":{"start_to_close_s":1.0,"schedule_to_close_s":2.0,"heartbeat_s":3.0},"line":"f.py:1"}'
        ),
    ),
    (e.TaskCancelRequested(up_to=5, task_no=2, line="f.py:1"), '{"up_to":5,"task_no":2,"line":"f.py:1"}'),
    (
        e.TimerStarted(up_to=5, timer_no=2, fire_at=1_700_000_000_000_000, line="f.py:1"),
        '{"up_to":5,"timer_no":2,"fire_at":1700000000000000,"line":"f.py:1"}',
    ),
    (e.TimerCancelled(up_to=5, timer_no=2, line="f.py:1"), '{"up_to":5,"timer_no":2,"line":"f.py:1"}'),
    (
        e.ChildStarted(
            up_to=5,
            child_no=1,
            child_execution_id="c",
            kind="k",
            version="2",
            workflow_id="w",
            input=Raw(b"1"),
            queue="q",
            priority=7,
            metadata={"m": "v"},
            execution_timeout_s=2.5,
            on_parent_close="cancel",
            if_running="use_existing",
            propagate_failure=False,
            depth=2,
            line="f.py:1",
        ),
        (
            '{"up_to":5,"child_no":1,"child_execution_id":"c","kind":"k","version":"2","workflow_id":"w","input":1,'
            '"queue":"q","priority":7,"metadata":{"m":"v"},"execution_timeout_s":2.5,"on_parent_close":"cancel",'
            '"if_running":"use_existing","propagate_failure":false,"depth":2,"line":"f.py:1"}'
        ),
    ),
    (e.ChildCancelRequested(up_to=5, child_no=1, line="f.py:1"), '{"up_to":5,"child_no":1,"line":"f.py:1"}'),
    (
        e.ExternalSignalInitiated(
            up_to=5, signal_no=1, target="t", signal_name="s", signal_value=Raw(b"1"), child_no=2, line="f.py:1"
        ),
        '{"up_to":5,"signal_no":1,"target":"t","signal_name":"s","signal_value":1,"child_no":2,"line":"f.py:1"}',
    ),
    (
        e.PromiseCreated(
            up_to=5,
            promise_no=2,
            name="p",
            token_hash="h",
            event_key="k",
            timer_no=3,
            expires_at=9,
            shape=Raw(b'{"is":"array","of":"int"}'),
            line="f.py:1",
        ),
        (
            '{"up_to":5,"promise_no":2,"name":"p","token_hash":"h","event_key":"k","timer_no":3,"expires_at":9,'
            '"shape":{"is":"array","of":"int"},"line":"f.py:1"}'
        ),
    ),
    (
        e.PromiseCancelled(up_to=5, promise_no=2, name="p", line="f.py:1"),
        '{"up_to":5,"promise_no":2,"name":"p","line":"f.py:1"}',
    ),
    (
        e.WaitStarted(
            up_to=5,
            wait_no=2,
            kind="event",
            key="k",
            correlation="c",
            where="input.a",
            since_at=8,
            after_event_id=3,
            skip=(4,),
            born=2,
            consume=True,
            line="f.py:1",
        ),
        (
            '{"up_to":5,"wait_no":2,"kind":"event","key":"k","correlation":"c","where":"input.a","since_at":8,'
            '"after_event_id":3,"skip":[4],"born":2,"consume":true,"line":"f.py:1"}'
        ),
    ),
    (e.WaitCancelled(up_to=5, wait_no=2, line="f.py:1"), '{"up_to":5,"wait_no":2,"line":"f.py:1"}'),
    (
        e.EventPublished(
            up_to=5,
            key="k",
            event_id=7,
            data=Raw(b"[1]"),
            correlation="c",
            expire_after_s=2.5,
            delivery="created_before",
            consume=True,
            line="f.py:1",
        ),
        (
            '{"up_to":5,"key":"k","event_id":7,"data":[1],"correlation":"c","expire_after_s":2.5,'
            '"delivery":"created_before","consume":true,"line":"f.py:1"}'
        ),
    ),
    (
        e.BroadcastThrown(up_to=5, name="n", broadcast_id=7, line="f.py:1"),
        '{"up_to":5,"name":"n","broadcast_id":7,"line":"f.py:1"}',
    ),
    (e.UpdateAccepted(up_to=5, update_id="u"), '{"up_to":5,"update_id":"u"}'),
    (
        e.UpdateRejected(up_to=5, update_id="u", failure=FAILURE),
        f'{{"up_to":5,"update_id":"u","failure":{FAILURE_JSON}}}',
    ),
    (e.UpdateCompleted(up_to=5, update_id="u", result=Raw(b"1")), '{"up_to":5,"update_id":"u","result":1}'),
    (
        e.UpdateFailed(up_to=5, update_id="u", failure=FAILURE),
        f'{{"up_to":5,"update_id":"u","failure":{FAILURE_JSON}}}',
    ),
    (e.PatchMarked(up_to=5, patch_id="p", line="f.py:1"), '{"up_to":5,"patch_id":"p","line":"f.py:1"}'),
    (
        e.StateChanged(up_to=5, values={"a": Raw(b"1")}, removed=("b",)),
        '{"up_to":5,"values":{"a":1},"removed":["b"]}',
    ),
    (
        e.MetadataChanged(up_to=5, values={"a": "1"}, removed=("b",)),
        '{"up_to":5,"values":{"a":"1"},"removed":["b"]}',
    ),
    (
        e.StepCompleted(
            up_to=5, step_no=1, name="n", result=Raw(b"1"), attempts=2, started_at=8, finished_at=9, line="f.py:1"
        ),
        '{"up_to":5,"step_no":1,"name":"n","result":1,"attempts":2,"started_at":8,"finished_at":9,"line":"f.py:1"}',
    ),
    (
        e.StepFailed(
            up_to=5, step_no=1, name="n", failure=FAILURE, attempts=2, started_at=8, finished_at=9, line="f.py:1"
        ),
        (
            f'{{"up_to":5,"step_no":1,"name":"n","failure":{FAILURE_JSON},"attempts":2,"started_at":8,"finished_at":9,'
            '"line":"f.py:1"}'
        ),
    ),
    (
        e.TurnCompleted(
            up_to=5,
            scheduled_at=7,
            started_at=8,
            worker="w",
            waiting_for=(Wait(kind="signal", name="s", number=4, line="f.py:1", until_at=9),),
        ),
        (
            '{"up_to":5,"scheduled_at":7,"started_at":8,"worker":"w",'
            '"waiting_for":[{"kind":"signal","name":"s","number":4,"line":"f.py:1","until_at":9}]}'
        ),
    ),
    (e.WorkflowCompleted(up_to=5, result=Raw(b"{}")), '{"up_to":5,"result":{}}'),
    (e.WorkflowFailed(up_to=5, failure=FAILURE), f'{{"up_to":5,"failure":{FAILURE_JSON}}}'),
    (e.WorkflowCancelled(up_to=5, reason="why"), '{"up_to":5,"reason":"why"}'),
    (
        e.WorkflowContinued(up_to=5, new_execution_id="n", kind="k", version="2", input=Raw(b"1")),
        '{"up_to":5,"new_execution_id":"n","kind":"k","version":"2","input":1}',
    ),
]

# The least each type needs: rows as an older writer, or a turn with nothing to say, leaves them.
LEAST = [
    ("WORKFLOW_STARTED", '{"kind":"k","workflow_id":"w"}'),
    ("SIGNAL_RECEIVED", '{"signal_name":"s"}'),
    ("TIMER_FIRED", '{"timer_no":3}'),
    ("TASK_COMPLETED", '{"task_no":2}'),
    ("TASK_FAILED", '{"task_no":2,"failure":{"type":"X"}}'),
    ("CHILD_COMPLETED", '{"child_no":1,"child_execution_id":"c"}'),
    ("CHILD_FAILED", '{"child_no":1,"child_execution_id":"c","status":"failed","failure":{"type":"X"}}'),
    (
        "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMPLETED",
        '{"signal_no":1,"target_execution_id":"t","signal_event_sequence":4}',
    ),
    ("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED", '{"signal_no":1,"failure":{"type":"X"}}'),
    ("UPDATE_REQUESTED", '{"update_id":"u","update_name":"n"}'),
    ("PROMISE_RESOLVED", '{"promise_no":2,"name":"p"}'),
    ("PROMISE_REJECTED", '{"promise_no":2,"name":"p","failure":{"type":"X"}}'),
    ("PROMISE_TIMED_OUT", '{"promise_no":2,"name":"p"}'),
    ("EVENT_RECEIVED", '{"wait_no":2,"key":"k","event_id":7}'),
    ("BROADCAST_RECEIVED", '{"wait_no":2,"name":"n","broadcast_id":7}'),
    ("CANCEL_REQUESTED", "{}"),
    ("WORKFLOW_RESET", '{"from_execution_id":"f","event_seq":5}'),
    ("WORKFLOW_TERMINATED", "{}"),
    ("WORKFLOW_TIMED_OUT", "{}"),
    ("TASK_SCHEDULED", '{"up_to":5,"task_no":2,"kind":"k"}'),
    ("TASK_CANCEL_REQUESTED", '{"up_to":5,"task_no":2}'),
    ("TIMER_STARTED", '{"up_to":5,"timer_no":2,"fire_at":1}'),
    ("TIMER_CANCELLED", '{"up_to":5,"timer_no":2}'),
    ("CHILD_STARTED", '{"up_to":5,"child_no":1,"child_execution_id":"c","kind":"k"}'),
    ("CHILD_CANCEL_REQUESTED", '{"up_to":5,"child_no":1}'),
    ("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED", '{"up_to":5,"signal_no":1,"target":"t","signal_name":"s"}'),
    ("PROMISE_CREATED", '{"up_to":5,"promise_no":2,"name":"p","token_hash":"h"}'),
    ("PROMISE_CANCELLED", '{"up_to":5,"promise_no":2,"name":"p"}'),
    ("WAIT_STARTED", '{"up_to":5,"wait_no":2,"kind":"event","key":"k"}'),
    ("WAIT_CANCELLED", '{"up_to":5,"wait_no":2}'),
    ("EVENT_PUBLISHED", '{"up_to":5,"key":"k","event_id":7}'),
    ("BROADCAST_THROWN", '{"up_to":5,"name":"n","broadcast_id":7}'),
    ("UPDATE_ACCEPTED", '{"up_to":5,"update_id":"u"}'),
    ("UPDATE_REJECTED", '{"up_to":5,"update_id":"u","failure":{"type":"X"}}'),
    ("UPDATE_COMPLETED", '{"up_to":5,"update_id":"u"}'),
    ("UPDATE_FAILED", '{"up_to":5,"update_id":"u","failure":{"type":"X"}}'),
    ("PATCH_MARKED", '{"up_to":5,"patch_id":"p"}'),
    ("STATE_CHANGED", '{"up_to":5}'),
    ("METADATA_CHANGED", '{"up_to":5}'),
    ("STEP_COMPLETED", '{"up_to":5,"step_no":1,"name":"n"}'),
    ("STEP_FAILED", '{"up_to":5,"step_no":1,"name":"n","failure":{"type":"X"}}'),
    ("WORKFLOW_TASK_COMPLETED", '{"up_to":5}'),
    ("WORKFLOW_COMPLETED", '{"up_to":5}'),
    ("WORKFLOW_FAILED", '{"up_to":5,"failure":{"type":"X"}}'),
    ("WORKFLOW_CANCELLED", '{"up_to":5}'),
    ("WORKFLOW_CONTINUED_AS_NEW", '{"up_to":5,"new_execution_id":"n","kind":"k","version":"2"}'),
]

TERMINAL = {
    "WORKFLOW_TERMINATED",
    "WORKFLOW_TIMED_OUT",
    "WORKFLOW_COMPLETED",
    "WORKFLOW_FAILED",
    "WORKFLOW_CANCELLED",
    "WORKFLOW_CONTINUED_AS_NEW",
}


def plain(body: msgspec.Struct) -> object:
    # Raw compares by identity; as plain values two bodies compare by content.
    return json.loads(msgspec.json.encode(body))


def type_name(value: object) -> str | None:
    return value.TYPE if isinstance(value, e.EventBody) else None


def test_the_examples_cover_every_event_type():
    """Each event type has one full and one least example, so none can change unnoticed."""
    assert [body.TYPE for body, _ in FULL] == list(e.EVENT_TYPES)
    assert [name for name, _ in LEAST] == list(e.EVENT_TYPES)


@pytest.mark.parametrize(("body", "stored"), FULL, ids=type_name)
def test_a_full_example_sets_every_field(body, stored):
    """The full example of a type leaves no field to its default."""
    assert set(json.loads(stored)) == set(body.__struct_fields__)


@pytest.mark.parametrize(("body", "stored"), FULL, ids=type_name)
def test_the_stored_form_is_pinned(body, stored):
    """An event is written byte for byte as it always was."""
    assert e.encode_body(body).decode() == stored


@pytest.mark.parametrize(("body", "stored"), FULL, ids=type_name)
def test_a_stored_event_is_read_as_it_was_written(body, stored):
    """A stored event decodes to an equal body of its own type."""
    back = e.decode_body(body.TYPE, 1, stored.encode())

    assert type(back) is type(body)
    assert plain(back) == plain(body)


@pytest.mark.parametrize(("name", "stored"), LEAST)
def test_the_least_row_is_read_and_written_alike(name, stored):
    """A row with nothing but the required fields can be read, and defaults are not written."""
    assert e.encode_body(e.decode_body(name, 1, stored.encode())).decode() == stored


@pytest.mark.parametrize(("name", "stored"), LEAST)
def test_a_field_of_a_later_holdfast_is_ignored(name, stored):
    """A row with an additional field of the same version is read: two versions may share a database."""
    later = json.dumps({**json.loads(stored), "added_later": [1]}).encode()

    assert e.encode_body(e.decode_body(name, 1, later)).decode() == stored


def test_payloads_are_kept_byte_for_byte():
    """A payload inside an event is not parsed or rewritten."""
    odd = b'{"b": 1.0,\n "a" : "\\u00e9", "a": 2}'
    body = e.decode_body("SIGNAL_RECEIVED", 1, b'{"signal_name":"s","signal_value":' + odd + b"}")

    assert isinstance(body, e.SignalReceived)
    assert bytes(body.signal_value) == odd


def test_an_unknown_type_is_too_new():
    """An event type this Holdfast does not know is refused with the advice to upgrade."""
    with pytest.raises(EventTooNew, match=r"FUTURE version 1 .* upgrade this program"):
        e.decode_body("FUTURE", 1, b"{}")


@pytest.mark.parametrize("name", e.EVENT_TYPES)
def test_a_newer_version_is_too_new(name):
    """A row written by a newer Holdfast is refused, not misread."""
    with pytest.raises(EventTooNew) as caught:
        e.decode_body(name, e.EVENT_TYPES[name].VERSION + 1, b"{}")

    assert caught.value.details == {"type": name, "version": e.EVENT_TYPES[name].VERSION + 1}


def test_an_older_version_is_brought_up_to_date(monkeypatch):
    """Rows of an older version pass through its upcasters, one version at a time."""
    monkeypatch.setattr(e.TimerFired, "VERSION", 3)
    monkeypatch.setitem(e.UPCASTERS, ("TIMER_FIRED", 1), lambda row: {"number": row["no"]})
    monkeypatch.setitem(e.UPCASTERS, ("TIMER_FIRED", 2), lambda row: {"timer_no": row["number"]})

    assert e.decode_body("TIMER_FIRED", 1, b'{"no":4}') == e.TimerFired(timer_no=4)


def test_every_older_version_has_its_upcaster():
    """No version of any type has been raised without a way to read the rows before it."""
    needed = {(name, old) for name, cls in e.EVENT_TYPES.items() for old in range(1, cls.VERSION)}

    assert needed == set(e.UPCASTERS)


def test_terminal_types_are_the_closing_ones():
    """Exactly the events that close an execution are terminal."""
    assert {name for name, cls in e.EVENT_TYPES.items() if cls.TERMINAL} == TERMINAL


def test_a_history_event_knows_its_type():
    """An event in its place answers with the type of its body."""
    assert e.HistoryEvent(1, 0, e.TimerFired(timer_no=1)).type == "TIMER_FIRED"
