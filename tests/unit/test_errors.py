"""The exception tree: drawn once, stable codes, data that survives."""

from __future__ import annotations

import inspect
import re

import pytest

from holdfast import errors

CLASSES = {
    name: cls for name, cls in vars(errors).items() if inspect.isclass(cls) and cls.__module__ == errors.__name__
}
OURS = {name: cls for name, cls in CLASSES.items() if issubclass(cls, errors.HoldfastError)}

# Codes are stored in histories and matched by clients in other languages: they never change.
CODES = {
    "HoldfastError": "error",
    "InvalidRequest": "invalid_request",
    "PayloadNotEncodable": "payload_not_encodable",
    "PayloadNotDecodable": "payload_not_decodable",
    "PayloadTooLarge": "payload_too_large",
    "PromiseValueInvalid": "promise_value_invalid",
    "InvalidDuration": "invalid_duration",
    "InvalidDatabaseUrl": "invalid_database_url",
    "InvalidDefinition": "invalid_definition",
    "InvalidExpression": "invalid_expression",
    "ExpressionFailed": "expression_failed",
    "ExpressionBudget": "expression_budget",
    "InvalidResetPoint": "invalid_reset_point",
    "InvalidHistory": "invalid_history",
    "InvalidCursor": "invalid_cursor",
    "Unsupported": "unsupported",
    "MalformedBody": "malformed_body",
    "BodyTooLarge": "body_too_large",
    "HeadersTooLarge": "headers_too_large",
    "MediaTypeRefused": "media_type_refused",
    "AmbiguousCredentials": "ambiguous_credentials",
    "InvalidServer": "invalid_server",
    "UnprotectedServer": "unprotected_server",
    "RouteNotFound": "route_not_found",
    "MethodNotAllowed": "method_not_allowed",
    "TooManyRequests": "too_many_requests",
    "ServerUnreachable": "server_unreachable",
    "DeadlinePassed": "deadline_passed",
    "AccessRefused": "access_refused",
    "Unauthenticated": "unauthenticated",
    "Forbidden": "forbidden",
    "UnexpectedAnswer": "unexpected_answer",
    "NotFound": "not_found",
    "ExecutionNotFound": "execution_not_found",
    "TaskNotFound": "task_not_found",
    "UnknownWorkflowKind": "unknown_workflow_kind",
    "PromiseNotFound": "promise_not_found",
    "EventNotFound": "event_not_found",
    "DeadLetterNotFound": "dead_letter_not_found",
    "UnknownQuery": "unknown_query",
    "UpdateNotFound": "update_not_found",
    "KeyNotFound": "key_not_found",
    "OrgNotFound": "org_not_found",
    "WorkerNotFound": "worker_not_found",
    "UnknownTaskKind": "unknown_task_kind",
    "Conflict": "conflict",
    "ExecutionClosed": "execution_closed",
    "ExecutionOpen": "execution_open",
    "WorkflowAlreadyRunning": "workflow_already_running",
    "WorkflowIdUsed": "workflow_id_used",
    "SignalLimitReached": "signal_limit",
    "RequestMismatch": "request_mismatch",
    "WouldDeadlock": "would_deadlock",
    "KeyEnded": "key_ended",
    "OrgClosed": "org_closed",
    "WorkerDraining": "worker_draining",
    "SessionLost": "session_lost",
    "StaleClaim": "stale_claim",
    "StaleAttempt": "stale_attempt",
    "TaskNotDeferred": "task_not_deferred",
    "Unavailable": "unavailable",
    "StorageFull": "storage_full",
    "StorageBusy": "storage_busy",
    "NoWorker": "no_worker",
    "EngineStopped": "engine_stopped",
    "EngineForked": "engine_forked",
    "StorageError": "storage_error",
    "SchemaTooNew": "schema_too_new",
    "SchemaTooOld": "schema_too_old",
    "StorageCorrupt": "storage_corrupt",
    "OutcomeUnknown": "outcome_unknown",
    "EventTooNew": "event_too_new",
    "DriverMissing": "driver_missing",
    "ServerNotSupported": "server_not_supported",
    "ServerReadOnly": "server_read_only",
    "AccessDenied": "access_denied",
    "ExecutionOutcome": "execution_outcome",
    "WorkflowFailed": "workflow_failed",
    "WorkflowCancelled": "workflow_cancelled",
    "WorkflowTerminated": "workflow_terminated",
    "WorkflowTimedOut": "workflow_timed_out",
    "CallFailed": "call_failed",
    "QueryFailed": "query_failed",
    "QueryNotReadOnly": "query_not_read_only",
    "UpdateRejected": "update_rejected",
    "UpdateFailed": "update_failed",
    "WaitFailed": "wait_failed",
    "StepFailed": "step_failed",
    "TaskFailed": "task_failed",
    "TaskTimedOut": "task_timed_out",
    "ChildWorkflowFailed": "child_workflow_failed",
    "ChildNotStarted": "child_not_started",
    "ExternalSignalFailed": "external_signal_failed",
    "AllFailed": "all_failed",
    "TooFewSucceeded": "too_few_succeeded",
    "PromiseRejected": "promise_rejected",
    "PromiseTimeout": "promise_timeout",
    "EventTimeout": "event_timeout",
    "ConditionTimeout": "condition_timeout",
    "CompensationFailed": "compensation_failed",
    "SignalTimeout": "signal_timeout",
    "ScenarioError": "scenario_error",
    "NeverSettled": "never_settled",
    "BodiesStillRunning": "bodies_still_running",
    "StuckExecution": "stuck_execution",
    "ProgramError": "program_error",
    "DeterminismError": "nondeterminism",
    "NotDurableError": "not_durable",
    "NeverAwaited": "never_awaited",
    "BlockedForever": "blocked_forever",
}


def drawn() -> dict[str, str]:
    """Each class in the module's drawing with the one it hangs from."""
    parents: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^    ([│├└─ ]*)([A-Z]\w+)(?:\((\w+)\))?(?:  |$)", line)
        if match is None:
            continue
        depth, name, root = len(match[1]), match[2], match[3]
        above = [(d, n) for d, n in above if d < depth]
        parents[name] = above[-1][1] if above else root or "Exception"
        above.append((depth, name))
    return parents


def test_the_drawing_is_the_tree():
    """The tree at the top of the module lists exactly the classes, each under its own base."""
    assert drawn() == {name: cls.__bases__[0].__name__ for name, cls in CLASSES.items()}


def test_codes_never_change():
    """Every class has the code it always had; a new class gets a line here."""
    assert {name: cls.code for name, cls in OURS.items()} == CODES


def test_codes_are_unique():
    """Each class defines a code of its own."""
    assert len({cls.code for cls in OURS.values()}) == len(OURS)
    assert all("code" in vars(cls) for cls in OURS.values())


@pytest.mark.parametrize("cls", OURS.values())
def test_the_docstring_is_the_default_message(cls):
    """An error raised without a message says what its class stands for."""
    assert str(cls()) == cls().message == cls.__doc__


@pytest.mark.parametrize("cls", OURS.values())
def test_the_message_can_be_given(cls):
    """A message of its own replaces the default one."""
    assert str(cls("what happened")) == "what happened"


def test_details_are_kept():
    """What an error is told beyond its message is in `details`, and its named parts are attributes too."""
    invalid = errors.InvalidRequest("no", field="input.a", size=3)
    waited = errors.TaskFailed("no", error_type="ValueError", attempts=3)
    mismatch = errors.DeterminismError("no", event_seq=7, recorded="timer", attempted="task")

    assert (invalid.field, invalid.details) == ("input.a", {"field": "input.a", "size": 3})
    assert (waited.error_type, waited.attempts) == ("ValueError", 3)
    assert (mismatch.event_seq, mismatch.recorded, mismatch.attempted) == (7, "timer", "task")
    assert mismatch.details["recorded_line"] == ""


def test_control_flow_passes_through_except_exception():
    """A user's `except Exception` can't catch control flow."""
    assert not issubclass(errors.ControlFlow, Exception)


def test_a_signal_timeout_is_a_timeout_error():
    """Code that expects Python's own TimeoutError catches it."""
    assert issubclass(errors.SignalTimeout, TimeoutError)
