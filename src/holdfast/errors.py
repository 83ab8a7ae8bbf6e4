"""Every exception of Holdfast, drawn once.

    HoldfastError                      code of its own on each leaf; never raised bare
    ├── InvalidRequest                 what was asked for can never work as asked
    │   ├── PayloadNotEncodable        a value has no durable form; says which field
    │   ├── PayloadNotDecodable        stored bytes do not fit the asked type
    │   ├── PayloadTooLarge
    │   ├── PromiseValueInvalid        its workflow could not read it; the promise is as pending as before
    │   ├── InvalidDuration            negative, NaN, or beyond ten years
    │   ├── InvalidDatabaseUrl
    │   ├── InvalidDefinition          a workflow or task that can't be registered
    │   ├── InvalidExpression          a filter that can't be read; says where
    │   ├── ExpressionFailed           a filter that has no answer for this payload
    │   │   └── ExpressionBudget       it would take too many steps
    │   ├── InvalidResetPoint          the event is not where a turn ends
    │   ├── InvalidHistory             what was stored as a history is none
    │   ├── InvalidCursor
    │   ├── Unsupported                the other side is older, and does not know this
    │   ├── MalformedBody              what a request carries can't be read, or has fields nobody knows
    │   ├── BodyTooLarge
    │   ├── HeadersTooLarge
    │   ├── MediaTypeRefused           the body is not JSON, or is compressed
    │   ├── AmbiguousCredentials       two keys in one request
    │   └── InvalidServer              the address of a server, or how it is to be run
    │       └── UnprotectedServer      others could reach it, and there are no keys
    ├── NotFound
    │   ├── RouteNotFound              the server has nothing there, or not for this caller
    │   ├── MethodNotAllowed
    │   ├── ExecutionNotFound
    │   ├── TaskNotFound               no standalone task has this id, or the execution no task of this number
    │   ├── UnknownWorkflowKind
    │   ├── PromiseNotFound            or a token that stands for nothing
    │   ├── EventNotFound
    │   ├── DeadLetterNotFound         or redelivered or removed before
    │   ├── UnknownQuery               the workflow has no query of this name
    │   ├── UpdateNotFound
    │   ├── KeyNotFound
    │   ├── OrgNotFound
    │   ├── WorkerNotFound             or its session has ended
    │   └── UnknownTaskKind
    ├── Conflict                       right in itself, but not in this state
    │   ├── ExecutionClosed
    │   ├── ExecutionOpen              it has to be closed for that
    │   ├── WorkflowAlreadyRunning     an open execution has this workflow id
    │   ├── WorkflowIdUsed             a closed one has, and that counts
    │   ├── SignalLimitReached
    │   ├── RequestMismatch            same request id, other content
    │   ├── WouldDeadlock              a blocking call on the thread that would have to answer it
    │   ├── KeyEnded                   revoked or expired
    │   ├── OrgClosed
    │   ├── WorkerDraining             it gets nothing more, for good
    │   ├── SessionLost                the worker's session has expired
    │   ├── StaleClaim                 the lease has passed to somebody else
    │   ├── StaleAttempt               the task's attempt is over
    │   └── TaskNotDeferred            its attempt was not left to somebody else
    ├── Unavailable                    try again later; nothing was changed
    │   ├── StorageFull
    │   ├── StorageBusy
    │   ├── NoWorker                   nobody here has the code
    │   ├── TooManyRequests
    │   ├── ServerUnreachable          the client has got no answer; with a request id it has tried again
    │   ├── DeadlinePassed             there was no answer in the time a call may take
    │   └── EngineStopped
    │       └── EngineForked           it runs in the parent process
    ├── AccessRefused                  the server does not do this for this caller
    │   ├── Unauthenticated            no key, or one that does not count
    │   └── Forbidden                  the key's role is not enough
    ├── UnexpectedAnswer               what answered is no Holdfast server, or not one this client knows
    ├── StorageError                   the database can't be used as it is
    │   ├── SchemaTooNew
    │   ├── SchemaTooOld               and this program may not change it
    │   ├── StorageCorrupt
    │   ├── OutcomeUnknown             lost while it committed; repeat with the same request id
    │   ├── DriverMissing              the driver of this database is not installed
    │   ├── ServerNotSupported         too old, or its database has another encoding than UTF8
    │   ├── ServerReadOnly             a standby, or read-only by its settings
    │   └── AccessDenied               wrong password, or a right is missing
    ├── EventTooNew                    a history goes on in a form that only a newer Holdfast knows
    ├── ExecutionOutcome               what `handle.result()` raises when there is no result
    │   ├── WorkflowFailed
    │   ├── WorkflowCancelled
    │   ├── WorkflowTerminated
    │   └── WorkflowTimedOut
    ├── CallFailed                     what `handle.query()` and `handle.update()` raise
    │   ├── QueryFailed
    │   │   └── QueryNotReadOnly       the query would have changed something
    │   ├── UpdateRejected             by its validator, or there is no such handler; nothing was changed
    │   └── UpdateFailed
    ├── WaitFailed                     raised inside a workflow at an await; catchable
    │   ├── StepFailed
    │   ├── TaskFailed
    │   │   └── TaskTimedOut
    │   ├── ChildWorkflowFailed        also when it was cancelled, terminated or timed out
    │   │   └── ChildNotStarted        unknown kind, workflow id in use, too deep
    │   ├── ExternalSignalFailed       the target is unknown, closed or full
    │   ├── AllFailed                  `ctx.any`: carries all outcomes
    │   │   └── TooFewSucceeded        `ctx.n_of`: carries the outcomes so far
    │   ├── CompensationFailed         `ctx.saga`: carries every failure
    │   ├── PromiseRejected            by whoever settled it
    │   ├── PromiseTimeout             also a TimeoutError
    │   ├── EventTimeout               also a TimeoutError
    │   ├── ConditionTimeout           `ctx.wait_until`; also a TimeoutError
    │   └── SignalTimeout              also a TimeoutError
    ├── ScenarioError                  raised by holdfast.testing alone: the test can't go on as written
    │   ├── NeverSettled               what is waited for was never fed, or can't come any more
    │   ├── BodiesStillRunning         a body does not end, and time was to wait for it
    │   └── StuckExecution             a workflow of the test was parked
    └── ProgramError                   the program, not the execution, is at fault: parks it as stuck
        ├── DeterminismError
        ├── NotDurableError
        ├── NeverAwaited               ended with work started that nobody has awaited
        └── BlockedForever

    ControlFlow(BaseException)         passes through `except Exception`; never recorded
    ├── ContinueAsNew                  raised by `ctx.continue_as_new`: this run is over
    └── Evicted                        the live program was thrown away; its code must stop

    NonRetryable(Exception)            a user's task or step raises it to say: do not try again

Errors carry data in attributes, a stable `code`, and a message that names the cause and the next step.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final


class HoldfastError(Exception):
    """Something went wrong in Holdfast."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str | None = None, **details: Any) -> None:
        super().__init__(message or type(self).__doc__ or self.code)
        self.details = details

    @property
    def message(self) -> str:
        return str(self.args[0])


# --- requests that can't work -------------------------------------------------------------------------------------


class InvalidRequest(HoldfastError):
    """The request is not valid; nothing was changed."""

    code = "invalid_request"

    def __init__(self, message: str | None = None, *, field: str = "", **details: Any) -> None:
        super().__init__(message, field=field, **details)
        self.field = field


class PayloadNotEncodable(InvalidRequest):
    """A value has no durable form: use plain values, dataclasses, msgspec structs or pydantic models."""

    code = "payload_not_encodable"


class PayloadNotDecodable(InvalidRequest):
    """A stored value does not fit the type that was asked for."""

    code = "payload_not_decodable"


class PayloadTooLarge(InvalidRequest):
    """A payload is larger than allowed: store it elsewhere and pass a reference."""

    code = "payload_too_large"


class PromiseValueInvalid(InvalidRequest):
    """A promise can't be settled with a value that its workflow could not read; nothing was changed."""

    code = "promise_value_invalid"


class InvalidDuration(InvalidRequest):
    """A duration must lie between 0 and ten years."""

    code = "invalid_duration"


class InvalidDatabaseUrl(InvalidRequest):
    """The database URL is not one Holdfast knows: use sqlite:///path/to/file.db or postgresql://user@host/database."""

    code = "invalid_database_url"


class InvalidDefinition(InvalidRequest):
    """A workflow or task can't be registered as it is written."""

    code = "invalid_definition"


class InvalidExpression(InvalidRequest):
    """An expression can't be read, or could never give the answer it is for."""

    code = "invalid_expression"

    def __init__(
        self, message: str | None = None, *, offset: int = 0, line: int = 1, column: int = 1, field: str = ""
    ) -> None:
        super().__init__(message, field=field, offset=offset, line=line, column=column)
        self.offset = offset
        self.line = line
        self.column = column


class ExpressionFailed(InvalidRequest):
    """An expression has no answer for this payload."""

    code = "expression_failed"


class ExpressionBudget(ExpressionFailed):
    """An expression takes more steps than its budget allows."""

    code = "expression_budget"


class InvalidResetPoint(InvalidRequest):
    """An execution can be taken back only to an event where a turn ends."""

    code = "invalid_reset_point"


class InvalidHistory(InvalidRequest):
    """This is not a stored history, or not one this Holdfast can read."""

    code = "invalid_history"


class InvalidCursor(InvalidRequest):
    """The page cursor was not made by this list call: start again without one."""

    code = "invalid_cursor"


class Unsupported(InvalidRequest):
    """The other side does not know this kind of request: upgrade the older of the two."""

    code = "unsupported"


class MalformedBody(InvalidRequest):
    """The request can't be read: it must be one JSON document with the fields the operation has, and no others."""

    code = "malformed_body"


class BodyTooLarge(InvalidRequest):
    """The request's body is larger than the server takes."""

    code = "body_too_large"


class HeadersTooLarge(InvalidRequest):
    """The request's headers or its address are larger than the server takes."""

    code = "headers_too_large"


class MediaTypeRefused(InvalidRequest):
    """The server takes JSON, not compressed: send content-type application/json."""

    code = "media_type_refused"


class AmbiguousCredentials(InvalidRequest):
    """A request must carry one key, in one place."""

    code = "ambiguous_credentials"


class InvalidServer(InvalidRequest):
    """A server can't be run, or reached, like this."""

    code = "invalid_server"


class UnprotectedServer(InvalidServer):
    """A server that others can reach needs at least one API key."""

    code = "unprotected_server"


# --- things that are not there ------------------------------------------------------------------------------------


class NotFound(HoldfastError):
    """There is no such thing."""

    code = "not_found"


class RouteNotFound(NotFound):
    """There is nothing at this address: /api/docs lists what there is."""

    code = "route_not_found"


class MethodNotAllowed(NotFound):
    """This address has other methods than this one."""

    code = "method_not_allowed"


class ExecutionNotFound(NotFound):
    """No execution has this id: check the id and the org."""

    code = "execution_not_found"


class TaskNotFound(NotFound):
    """No standalone task has this id (list_tasks() shows what there is), or an execution has no task of this number."""

    code = "task_not_found"


class UnknownWorkflowKind(NotFound):
    """No worker has ever registered this workflow kind: pass it in `workflows=[...]` of an Engine on this database."""

    code = "unknown_workflow_kind"


class PromiseNotFound(NotFound):
    """No promise has this id, name or token."""

    code = "promise_not_found"


class EventNotFound(NotFound):
    """No kept or dead event has this number."""

    code = "event_not_found"


class DeadLetterNotFound(NotFound):
    """This signal is no dead letter, or is one no more: it was redelivered or removed."""

    code = "dead_letter_not_found"


class UnknownQuery(NotFound):
    """The workflow has no query of this name."""

    code = "unknown_query"


class UpdateNotFound(NotFound):
    """The execution has received no update with this id."""

    code = "update_not_found"


class KeyNotFound(NotFound):
    """No API key of this org has this id."""

    code = "key_not_found"


class OrgNotFound(NotFound):
    """There is no org of this name."""

    code = "org_not_found"


class WorkerNotFound(NotFound):
    """No worker session of this org has this id, or it has ended: list the workers."""

    code = "worker_not_found"


class UnknownTaskKind(NotFound):
    """This worker does not know the task kind: pass it in `tasks=[...]`."""

    code = "unknown_task_kind"


# --- conflicts with the present state -----------------------------------------------------------------------------


class Conflict(HoldfastError):
    """The present state does not allow this; nothing was changed."""

    code = "conflict"


class ExecutionClosed(Conflict):
    """The execution is closed: signal-with-start begins a fresh one."""

    code = "execution_closed"


class ExecutionOpen(Conflict):
    """The execution is still open: cancel or terminate it first."""

    code = "execution_open"


class WorkflowAlreadyRunning(Conflict):
    """An open execution has this workflow id."""

    code = "workflow_already_running"


class WorkflowIdUsed(Conflict):
    """An execution with this workflow id has run before, and the caller does not want another."""

    code = "workflow_id_used"


class SignalLimitReached(Conflict):
    """The execution has received as many signals as it may: put several values into one, or start another."""

    code = "signal_limit"


class RequestMismatch(Conflict):
    """This request id was used for another request: send a new id."""

    code = "request_mismatch"


class WouldDeadlock(Conflict):
    """A blocking call was made on the thread whose event loop has to answer it: await the async client there."""

    code = "would_deadlock"


class KeyEnded(Conflict):
    """The API key was revoked or has expired: make a new one."""

    code = "key_ended"


class OrgClosed(Conflict):
    """The org was closed, and its name is not given again."""

    code = "org_closed"


class WorkerDraining(Conflict):
    """The worker is being drained, which can't be taken back: start another one."""

    code = "worker_draining"


class SessionLost(Conflict):
    """The worker's session has expired and others may hold what it held: drop everything and open a new session."""

    code = "session_lost"


class StaleClaim(Conflict):
    """The lease on this execution has passed to another worker: drop the cached program and claim again."""

    code = "stale_claim"


class StaleAttempt(Conflict):
    """This attempt of the task is over: its report was not recorded."""

    code = "stale_attempt"


class TaskNotDeferred(Conflict):
    """The task's attempt was not left to somebody else: its body has to call complete_later()."""

    code = "task_not_deferred"


# --- not now ------------------------------------------------------------------------------------------------------


class Unavailable(HoldfastError):
    """Not possible just now; nothing was changed, try again later."""

    code = "unavailable"


class StorageFull(Unavailable):
    """The disk or database is full: reads go on, writes resume by themselves when there is space."""

    code = "storage_full"


class StorageBusy(Unavailable):
    """The database stayed locked by another process beyond the deadline."""

    code = "storage_busy"


class NoWorker(Unavailable):
    """No worker connected here has the code of this workflow: start one with it."""

    code = "no_worker"


class TooManyRequests(Unavailable):
    """More requests than this caller may make: wait a little."""

    code = "too_many_requests"


class ServerUnreachable(Unavailable):
    """The server can't be reached, or did not answer."""

    code = "server_unreachable"


class DeadlinePassed(Unavailable):
    """There was no answer in the time a call may take; what was asked for may be done all the same."""

    code = "deadline_passed"


class EngineStopped(Unavailable):
    """The engine is not running: use it inside `async with Engine(...)`."""

    code = "engine_stopped"


class EngineForked(EngineStopped):
    """The engine runs in the parent process: start one in each process, after the fork."""

    code = "engine_forked"


# --- not for everybody --------------------------------------------------------------------------------------------


class AccessRefused(HoldfastError):
    """The server does not do this for this caller; nothing was changed."""

    code = "access_refused"


class Unauthenticated(AccessRefused):
    """The server needs a valid API key: send it as `Authorization: Bearer`."""

    code = "unauthenticated"


class Forbidden(AccessRefused):
    """The role of this API key does not allow this."""

    code = "forbidden"


class UnexpectedAnswer(HoldfastError):
    """What answered is no Holdfast server, or not one this client understands."""

    code = "unexpected_answer"


# --- the database itself ------------------------------------------------------------------------------------------


class StorageError(HoldfastError):
    """The database can't be used as it is."""

    code = "storage_error"


class SchemaTooNew(StorageError):
    """The database was written by a newer Holdfast: upgrade this program."""

    code = "schema_too_new"


class SchemaTooOld(StorageError):
    """The database has an older schema, and this program was told not to change it: run `holdfast migrate URL`."""

    code = "schema_too_old"


class OutcomeUnknown(StorageError):
    """The database was lost while it committed, and nobody could be asked in time: the call may count or not. The same
    call with the same request id finds out."""

    code = "outcome_unknown"


class StorageCorrupt(StorageError):
    """The database is damaged: stop, copy the files, and restore a backup."""

    code = "storage_corrupt"


class DriverMissing(StorageError):
    """The driver of this database is not installed: pip install 'holdfast[postgres]'."""

    code = "driver_missing"


class ServerNotSupported(StorageError):
    """The database server, or the database on it, is not one Holdfast can use."""

    code = "server_not_supported"


class ServerReadOnly(StorageError):
    """The database server does not accept writes: it is a standby, or was set so."""

    code = "server_read_only"


class AccessDenied(StorageError):
    """The database does not let this user in, or does not let it do what is needed."""

    code = "access_denied"


class EventTooNew(HoldfastError):
    """An event was written by a newer Holdfast: upgrade this program."""

    code = "event_too_new"


NOT_NOW: Final = (Unavailable, StorageError)
"""Neither the caller nor what it asks for is to blame, and it may pass: the database is gone, full, a standby, or lets
nobody in. Who has done work and must report it, or has to run for ever, waits and tries again."""

# --- how an execution ended, for callers --------------------------------------------------------------------------


class ExecutionOutcome(HoldfastError):
    """The execution ended without a result."""

    code = "execution_outcome"


class WorkflowFailed(ExecutionOutcome):
    """The workflow failed."""

    code = "workflow_failed"

    def __init__(
        self, message: str | None = None, *, error_type: str = "", traceback: str = "", **details: Any
    ) -> None:
        super().__init__(message, error_type=error_type, **details)
        self.error_type = error_type
        self.traceback = traceback


class WorkflowCancelled(ExecutionOutcome):
    """The workflow was cancelled."""

    code = "workflow_cancelled"


class WorkflowTerminated(ExecutionOutcome):
    """The workflow was terminated."""

    code = "workflow_terminated"


class WorkflowTimedOut(ExecutionOutcome):
    """The workflow ran longer than its execution timeout."""

    code = "workflow_timed_out"


# --- calls into a workflow ----------------------------------------------------------------------------------------


class CallFailed(HoldfastError):
    """A query or update was not answered."""

    code = "call_failed"

    def __init__(self, message: str | None = None, *, error_type: str = "", **details: Any) -> None:
        super().__init__(message, error_type=error_type, **details)
        self.error_type = error_type


class QueryFailed(CallFailed):
    """The query's handler raised an error."""

    code = "query_failed"


class QueryNotReadOnly(QueryFailed):
    """A query must only look: it tried to change the workflow, which was kept as it was."""

    code = "query_not_read_only"


class UpdateRejected(CallFailed):
    """The workflow did not accept the update; nothing was changed."""

    code = "update_rejected"


class UpdateFailed(CallFailed):
    """The update was accepted, but its handler failed or the workflow closed before it was done."""

    code = "update_failed"


# --- failures a workflow sees at an await -------------------------------------------------------------------------


class WaitFailed(HoldfastError):
    """Something the workflow waited for did not succeed."""

    code = "wait_failed"

    def __init__(self, message: str | None = None, *, error_type: str = "", attempts: int = 0, **details: Any) -> None:
        super().__init__(message, error_type=error_type, attempts=attempts, **details)
        self.error_type = error_type
        self.attempts = attempts


class StepFailed(WaitFailed):
    """A step failed and its retries are used up."""

    code = "step_failed"


class TaskFailed(WaitFailed):
    """A task failed and its retries are used up."""

    code = "task_failed"


class TaskTimedOut(TaskFailed):
    """A task ran out of time and its retries are used up."""

    code = "task_timed_out"


class ChildWorkflowFailed(WaitFailed):
    """A child ended without a result. `status` says how: failed, cancelled, terminated, timed_out, not_started."""

    code = "child_workflow_failed"

    def __init__(
        self, message: str | None = None, *, status: str = "failed", child_execution_id: str = "", **details: Any
    ) -> None:
        super().__init__(message, status=status, child_execution_id=child_execution_id, **details)
        self.status = status
        self.child_execution_id = child_execution_id


class ChildNotStarted(ChildWorkflowFailed):
    """The child could not begin."""

    code = "child_not_started"


class ExternalSignalFailed(WaitFailed):
    """The signal to another workflow was not delivered."""

    code = "external_signal_failed"


class AllFailed(WaitFailed):
    """None of the items succeeded."""

    code = "all_failed"

    def __init__(self, message: str | None = None, *, outcomes: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.outcomes = outcomes


class TooFewSucceeded(AllFailed):
    """The number of successes asked for can't be reached any more."""

    code = "too_few_succeeded"


class CompensationFailed(WaitFailed):
    """A compensation of a saga failed and its retries are used up; the others have run."""

    code = "compensation_failed"

    def __init__(self, message: str | None = None, *, failures: tuple[BaseException, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


class PromiseRejected(WaitFailed):
    """Whoever settled the promise rejected it."""

    code = "promise_rejected"


class PromiseTimeout(WaitFailed, TimeoutError):
    """Nobody settled the promise in time."""

    code = "promise_timeout"


class EventTimeout(WaitFailed, TimeoutError):
    """Nothing that the workflow waited for was published in time."""

    code = "event_timeout"


class ConditionTimeout(WaitFailed, TimeoutError):
    """The condition did not become true in time."""

    code = "condition_timeout"


class SignalTimeout(WaitFailed, TimeoutError):
    """No signal of this name came in time."""

    code = "signal_timeout"


# --- tests that can't go on as they are ---------------------------------------------------------------------------


class ScenarioError(HoldfastError):
    """The test can't go on as it is written."""

    code = "scenario_error"


class NeverSettled(ScenarioError):
    """The workflow waits for something that will never come in this test."""

    code = "never_settled"


class BodiesStillRunning(ScenarioError):
    """Steps or tasks are still running, and time was to wait for them."""

    code = "bodies_still_running"


class StuckExecution(ScenarioError):
    """A workflow can't be driven as it is written: it was parked."""

    code = "stuck_execution"


# --- programs that can't go on as they are ------------------------------------------------------------------------


class ProgramError(HoldfastError):
    """The program can't be driven as it is written; the execution is parked, not failed."""

    code = "program_error"


class DeterminismError(ProgramError):
    """The program asked for something else than its history records."""

    code = "nondeterminism"

    def __init__(
        self,
        message: str | None = None,
        *,
        event_seq: int = 0,
        recorded: str = "",
        attempted: str = "",
        recorded_line: str = "",
        attempted_line: str = "",
    ) -> None:
        super().__init__(
            message,
            event_seq=event_seq,
            recorded=recorded,
            attempted=attempted,
            recorded_line=recorded_line,
            attempted_line=attempted_line,
        )
        self.event_seq = event_seq
        self.recorded = recorded
        self.attempted = attempted
        self.recorded_line = recorded_line
        self.attempted_line = attempted_line


class NotDurableError(ProgramError):
    """Workflow code reached outside: do it in a step (`ctx.run`) or a task (`ctx.task`)."""

    code = "not_durable"

    def __init__(self, message: str | None = None, *, call: str = "") -> None:
        super().__init__(message, call=call)
        self.call = call


class NeverAwaited(ProgramError):
    """The workflow ended while work it had started was never awaited: it would be lost."""

    code = "never_awaited"


class BlockedForever(ProgramError):
    """The workflow awaits something that nothing durable can ever settle."""

    code = "blocked_forever"


# --- control flow -------------------------------------------------------------------------------------------------


class ControlFlow(BaseException):
    """Never recorded, never caught by `except Exception`."""


class ContinueAsNew(ControlFlow):
    """This run is over; the next one begins with other input."""


class Evicted(ControlFlow):
    """The live program was thrown away (its history is safe); its code must not go on."""


class NonRetryable(Exception):
    """Raise it (or a subclass) from a task or step to fail at once, whatever the retry policy says."""


# --- errors that have travelled -----------------------------------------------------------------------------------


def by_code(code: str) -> type[HoldfastError]:
    """The class that has this code; HoldfastError itself if there is none."""
    if not _BY_CODE:
        _BY_CODE.update((cls.code, cls) for cls in _all_of(HoldfastError))
    return _BY_CODE.get(code, HoldfastError)


def revived(code: str, message: str, details: dict[str, Any]) -> HoldfastError:
    """An error as it was raised elsewhere, from what it has told of itself."""
    cls = by_code(code)
    try:
        return cls(message, **details)
    except TypeError:  # details this version does not know
        error = cls(message)
        error.details.update(details)
        return error


_BY_CODE: dict[str, type[HoldfastError]] = {}


def _all_of(cls: type[HoldfastError]) -> list[type[HoldfastError]]:
    return [cls, *(found for child in cls.__subclasses__() for found in _all_of(child))]
