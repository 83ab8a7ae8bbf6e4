"""What idempotency keys and cursors of an earlier version were made from is made from the same requests now."""

from msgspec import Raw

from holdfast.contract.instants import instant
from holdfast.contract.tasks import ListTasks, Retry, StartTask
from holdfast.engine.cursors import Cursors
from holdfast.engine.idempotency import fingerprint_of
from holdfast.engine.tasks.settle import SettleTask
from holdfast.model.executions import Status
from holdfast.model.values import Failure, IfClosed, IfRunning, RetryPolicy

START = StartTask(
    org="o",
    kind="k",
    task_id="t",
    args=(Raw(b'{"b":1,"a":[2]}'), Raw(b"3")),
    queue="q",
    priority=5,
    retry=Retry(max_attempts=3, backoff=1.5),
    start_to_close_s=60.0,
    schedule_to_close_s=90.0,
    heartbeat_timeout_s=5.0,
    metadata={"m": "n"},
    start_at=instant(1_800_000_000_123_456),
    if_running=IfRunning.FAIL,
    if_closed=IfClosed.REJECT,
    ttl_s=7.0,
    request_id="r",
)


def test_a_task_that_was_started_by_an_earlier_version_is_known():
    """With nothing but its kind, and with all there is."""
    usual = StartTask(org="o", kind="k", retry=Retry.of(RetryPolicy()))

    assert "b5547ecb410ac88637632ccc6e21dc0231fc9b0783917f9f05cdb28c3ed28751" == fingerprint_of(usual)
    assert "1c8685f13a4dd1a3f5b01e7377738b08ce01d134907c5f8cdf7a46edcad84d71" == fingerprint_of(START)


def test_a_task_that_was_settled_by_an_earlier_version_is_known():
    completed = SettleTask(org="o", task_id="t", value=Raw(b'{"b": 1, "a": 2}'), request_id="r")
    failed = SettleTask(org="o", task_id="t", failure=Failure(type="TaskFailed", message="no"), request_id="r")

    assert "94fc75d7b69315080403cbc558fba8033ff5dde9188924d2829bcf344080d189" == fingerprint_of(completed)
    assert "37eaf2fe770a0941401bee136c7288d6bdb3f4ff2e675beb0889ef7f4cd05d60" == fingerprint_of(failed)


def test_a_list_of_tasks_that_was_begun_by_an_earlier_version_is_read_on():
    cursors = Cursors(lambda: b"x" * 32)
    tags = {"b": "2", "a": "1"}
    narrow = ListTasks(org="o", statuses=(Status.FAILED,), kind="k", queue="q", metadata=tags, limit=3)

    assert "JS0JuX2KJUQ1DR6NXBshsmxhc3Q=" == cursors.make(narrow, "last")
    assert "jX0F0DUArGF-xnMF7OtCiWxhc3Q=" == cursors.make(ListTasks(org="o"), "last")
