"""The public surface is a list; what is not on it is nobody's business."""

import json
import subprocess
import sys

import pytest

import holdfast

LISTED = [
    "Broadcast",
    "ChildHandle",
    "Client",
    "CreateKey",
    "DeadEventView",
    "DeadLetter",
    "Delivery",
    "Engine",
    "EngineConfig",
    "EventExplanation",
    "EventKeyView",
    "EventView",
    "ExecutionInfo",
    "HistoryEvent",
    "HoldfastError",
    "IfClosed",
    "IfRunning",
    "KeyMade",
    "KeyView",
    "Limits",
    "Mailbox",
    "MailboxEntry",
    "MessageSent",
    "NonRetryable",
    "On",
    "Outcome",
    "ParentClose",
    "PauseInfo",
    "PendingTask",
    "PendingTimer",
    "PromiseFuture",
    "PromiseState",
    "PromiseView",
    "Published",
    "QueueInfo",
    "RecoveryReport",
    "Redelivered",
    "RemoteWorker",
    "RetryPolicy",
    "RevokeKey",
    "Role",
    "RotateKey",
    "Saga",
    "Server",
    "ServerConfig",
    "SettledPromise",
    "SignalResponse",
    "SignalWithStartResponse",
    "Status",
    "StoreConfig",
    "SyncClient",
    "SyncEngine",
    "SyncTaskHandle",
    "SyncUpdateHandle",
    "SyncWorkflowHandle",
    "TaskChunk",
    "TaskContext",
    "TaskHandle",
    "TaskInfo",
    "TaskOutput",
    "TaskPage",
    "TaskUpdate",
    "TaskView",
    "TelemetryConfig",
    "UpdateHandle",
    "UpdateStatus",
    "WaitExplanation",
    "WaitView",
    "WaitingFor",
    "WorkerConfig",
    "WorkerInfo",
    "WorkflowContext",
    "WorkflowExplanation",
    "WorkflowHandle",
    "WorkflowInfo",
    "WorkflowPage",
    "query",
    "signal",
    "task",
    "update",
    "workflow",
]


def in_a_fresh_python(code: str) -> object:
    """What the code prints, as JSON, in an interpreter that has imported nothing of ours."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


def test_all_is_the_list():
    """`__all__` names exactly what users may import, sorted."""
    assert LISTED == sorted(LISTED)
    assert LISTED == holdfast.__all__


@pytest.mark.parametrize("name", LISTED)
def test_every_name_resolves(name):
    """Each name is there, made by Holdfast, and appears in dir()."""
    assert getattr(holdfast, name).__module__.startswith("holdfast.")
    assert name in dir(holdfast)


def test_star_import_gives_the_list():
    """`from holdfast import *` loads every listed name and nothing else."""
    code = "import json; from holdfast import *; print(json.dumps(sorted(set(globals()) - {'json'})))"
    found = in_a_fresh_python(code)

    assert isinstance(found, list)
    assert LISTED == [name for name in found if not name.startswith("__")]


def test_an_unknown_name_is_an_attribute_error():
    """A name that is not on the list fails as in any other module."""
    with pytest.raises(AttributeError, match="no attribute 'workflows'"):
        _ = holdfast.workflows


def test_importing_is_light():
    """`import holdfast` loads no event loop, no codec and no database driver."""
    code = "import holdfast, json, sys; print(json.dumps(sorted(sys.modules)))"
    loaded = in_a_fresh_python(code)

    assert isinstance(loaded, list)
    assert {"asyncio", "msgspec", "sqlite3"}.isdisjoint(loaded)


def test_the_decorators_load_no_database():
    """A module of workflows can be imported where there is no database driver at all."""
    code = "import holdfast, json, sys; holdfast.workflow, holdfast.task; print(json.dumps(sorted(sys.modules)))"
    loaded = in_a_fresh_python(code)

    assert isinstance(loaded, list)
    assert "sqlite3" not in loaded
