from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SignalWithStartWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_id", "workflow_kind", "workflow_input", "queue", "priority_seconds", "workflow_version", "metadata", "signal_name", "signal_value", "idempotency_key_ttl_seconds")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_KIND_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_INPUT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_VERSION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_VALUE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_id: str
    workflow_kind: str
    workflow_input: bytes
    queue: str
    priority_seconds: int
    workflow_version: str
    metadata: _containers.ScalarMap[str, str]
    signal_name: str
    signal_value: bytes
    idempotency_key_ttl_seconds: int
    def __init__(self, org_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., workflow_kind: _Optional[str] = ..., workflow_input: _Optional[bytes] = ..., queue: _Optional[str] = ..., priority_seconds: _Optional[int] = ..., workflow_version: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., signal_name: _Optional[str] = ..., signal_value: _Optional[bytes] = ..., idempotency_key_ttl_seconds: _Optional[int] = ...) -> None: ...

class SignalWithStartWorkflowResponse(_message.Message):
    __slots__ = ("workflow_execution_id", "workflow_created", "signal_event_sequence", "signal_delivered")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_CREATED_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_EVENT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_DELIVERED_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    workflow_created: bool
    signal_event_sequence: int
    signal_delivered: bool
    def __init__(self, workflow_execution_id: _Optional[str] = ..., workflow_created: _Optional[bool] = ..., signal_event_sequence: _Optional[int] = ..., signal_delivered: _Optional[bool] = ...) -> None: ...

class SignalWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "signal_name", "signal_value")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_VALUE_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    signal_name: str
    signal_value: bytes
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., signal_name: _Optional[str] = ..., signal_value: _Optional[bytes] = ...) -> None: ...

class SignalWorkflowResponse(_message.Message):
    __slots__ = ("signal_event_sequence", "signal_delivered")
    SIGNAL_EVENT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_DELIVERED_FIELD_NUMBER: _ClassVar[int]
    signal_event_sequence: int
    signal_delivered: bool
    def __init__(self, signal_event_sequence: _Optional[int] = ..., signal_delivered: _Optional[bool] = ...) -> None: ...

class StartWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_id", "workflow_kind", "workflow_input", "queue", "priority_seconds", "workflow_version", "metadata", "idempotency_key_ttl_seconds", "execution_timeout_seconds", "start_at", "if_running", "if_closed")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_KIND_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_INPUT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_VERSION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    START_AT_FIELD_NUMBER: _ClassVar[int]
    IF_RUNNING_FIELD_NUMBER: _ClassVar[int]
    IF_CLOSED_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_id: str
    workflow_kind: str
    workflow_input: bytes
    queue: str
    priority_seconds: int
    workflow_version: str
    metadata: _containers.ScalarMap[str, str]
    idempotency_key_ttl_seconds: int
    execution_timeout_seconds: float
    start_at: int
    if_running: str
    if_closed: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., workflow_kind: _Optional[str] = ..., workflow_input: _Optional[bytes] = ..., queue: _Optional[str] = ..., priority_seconds: _Optional[int] = ..., workflow_version: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., idempotency_key_ttl_seconds: _Optional[int] = ..., execution_timeout_seconds: _Optional[float] = ..., start_at: _Optional[int] = ..., if_running: _Optional[str] = ..., if_closed: _Optional[str] = ...) -> None: ...

class StartWorkflowResponse(_message.Message):
    __slots__ = ("workflow_execution_id", "workflow_id", "workflow_created", "idempotency_key_used", "idempotency_key_new")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_CREATED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    workflow_id: str
    workflow_created: bool
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, workflow_execution_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., workflow_created: _Optional[bool] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class CancelWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "reason")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    reason: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelWorkflowResponse(_message.Message):
    __slots__ = ("changed",)
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    changed: bool
    def __init__(self, changed: _Optional[bool] = ...) -> None: ...

class TerminateWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "reason")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    reason: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class TerminateWorkflowResponse(_message.Message):
    __slots__ = ("changed",)
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    changed: bool
    def __init__(self, changed: _Optional[bool] = ...) -> None: ...

class ResolvePromiseRequest(_message.Message):
    __slots__ = ("promise_id", "value", "idempotency_key", "idempotency_key_ttl_seconds", "org_id")
    PROMISE_ID_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    promise_id: str
    value: bytes
    idempotency_key: str
    idempotency_key_ttl_seconds: int
    org_id: str
    def __init__(self, promise_id: _Optional[str] = ..., value: _Optional[bytes] = ..., idempotency_key: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ..., org_id: _Optional[str] = ...) -> None: ...

class ResolvePromiseResponse(_message.Message):
    __slots__ = ("already_resolved", "idempotency_key_used", "idempotency_key_new")
    ALREADY_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    already_resolved: bool
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, already_resolved: _Optional[bool] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class RejectPromiseRequest(_message.Message):
    __slots__ = ("promise_id", "error", "idempotency_key", "idempotency_key_ttl_seconds", "org_id", "error_type")
    PROMISE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    promise_id: str
    error: str
    idempotency_key: str
    idempotency_key_ttl_seconds: int
    org_id: str
    error_type: str
    def __init__(self, promise_id: _Optional[str] = ..., error: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ..., org_id: _Optional[str] = ..., error_type: _Optional[str] = ...) -> None: ...

class RejectPromiseResponse(_message.Message):
    __slots__ = ("already_resolved", "idempotency_key_used", "idempotency_key_new")
    ALREADY_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    already_resolved: bool
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, already_resolved: _Optional[bool] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class PublishEventRequest(_message.Message):
    __slots__ = ("org_id", "key", "data", "idempotency_key", "idempotency_key_ttl_seconds")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    key: str
    data: bytes
    idempotency_key: str
    idempotency_key_ttl_seconds: int
    def __init__(self, org_id: _Optional[str] = ..., key: _Optional[str] = ..., data: _Optional[bytes] = ..., idempotency_key: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ...) -> None: ...

class PublishEventResponse(_message.Message):
    __slots__ = ("event_id", "delivered", "retained", "idempotency_key_used", "idempotency_key_new")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    RETAINED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    event_id: int
    delivered: int
    retained: bool
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, event_id: _Optional[int] = ..., delivered: _Optional[int] = ..., retained: _Optional[bool] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class QueryWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "query_name", "input", "as_of")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    query_name: str
    input: bytes
    as_of: int
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., query_name: _Optional[str] = ..., input: _Optional[bytes] = ..., as_of: _Optional[int] = ...) -> None: ...

class QueryWorkflowResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: bytes
    def __init__(self, result: _Optional[bytes] = ...) -> None: ...

class UpdateWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "update_name", "input", "update_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    UPDATE_NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    update_name: str
    input: bytes
    update_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., update_name: _Optional[str] = ..., input: _Optional[bytes] = ..., update_id: _Optional[str] = ...) -> None: ...

class UpdateWorkflowResponse(_message.Message):
    __slots__ = ("update_id", "result")
    UPDATE_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    update_id: str
    result: bytes
    def __init__(self, update_id: _Optional[str] = ..., result: _Optional[bytes] = ...) -> None: ...

class GetWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "workflow_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    workflow_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., workflow_id: _Optional[str] = ...) -> None: ...

class GetWorkflowResponse(_message.Message):
    __slots__ = ("workflow",)
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    workflow: WorkflowExecution
    def __init__(self, workflow: _Optional[_Union[WorkflowExecution, _Mapping]] = ...) -> None: ...

class WorkflowExecution(_message.Message):
    __slots__ = ("workflow_execution_id", "workflow_id", "workflow_kind", "workflow_version", "queue", "priority_seconds", "status", "created_at", "updated_at", "last_event_sequence", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_KIND_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_VERSION_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_EVENT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    workflow_id: str
    workflow_kind: str
    workflow_version: str
    queue: str
    priority_seconds: int
    status: str
    created_at: int
    updated_at: int
    last_event_sequence: int
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, workflow_execution_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., workflow_kind: _Optional[str] = ..., workflow_version: _Optional[str] = ..., queue: _Optional[str] = ..., priority_seconds: _Optional[int] = ..., status: _Optional[str] = ..., created_at: _Optional[int] = ..., updated_at: _Optional[int] = ..., last_event_sequence: _Optional[int] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class GetResultRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "wait_seconds")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    wait_seconds: float
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., wait_seconds: _Optional[float] = ...) -> None: ...

class GetResultResponse(_message.Message):
    __slots__ = ("closed", "status", "result", "error_type", "error", "successor")
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SUCCESSOR_FIELD_NUMBER: _ClassVar[int]
    closed: bool
    status: str
    result: bytes
    error_type: str
    error: str
    successor: str
    def __init__(self, closed: _Optional[bool] = ..., status: _Optional[str] = ..., result: _Optional[bytes] = ..., error_type: _Optional[str] = ..., error: _Optional[str] = ..., successor: _Optional[str] = ...) -> None: ...

class GetHistoryRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "after", "limit")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    after: int
    limit: int
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., after: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class GetHistoryResponse(_message.Message):
    __slots__ = ("events", "more")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[HistoryEvent]
    more: bool
    def __init__(self, events: _Optional[_Iterable[_Union[HistoryEvent, _Mapping]]] = ..., more: _Optional[bool] = ...) -> None: ...

class HistoryEvent(_message.Message):
    __slots__ = ("sequence", "at", "type", "version", "body")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    at: int
    type: str
    version: int
    body: bytes
    def __init__(self, sequence: _Optional[int] = ..., at: _Optional[int] = ..., type: _Optional[str] = ..., version: _Optional[int] = ..., body: _Optional[bytes] = ...) -> None: ...

class ListWorkflowsRequest(_message.Message):
    __slots__ = ("org_id", "statuses", "workflow_kinds", "workflow_id", "queue", "metadata", "limit", "cursor")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_KINDS_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    statuses: _containers.RepeatedScalarFieldContainer[str]
    workflow_kinds: _containers.RepeatedScalarFieldContainer[str]
    workflow_id: str
    queue: str
    metadata: _containers.ScalarMap[str, str]
    limit: int
    cursor: str
    def __init__(self, org_id: _Optional[str] = ..., statuses: _Optional[_Iterable[str]] = ..., workflow_kinds: _Optional[_Iterable[str]] = ..., workflow_id: _Optional[str] = ..., queue: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListWorkflowsResponse(_message.Message):
    __slots__ = ("workflows", "next_cursor")
    WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    workflows: _containers.RepeatedCompositeFieldContainer[WorkflowExecution]
    next_cursor: str
    def __init__(self, workflows: _Optional[_Iterable[_Union[WorkflowExecution, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class RetryPolicy(_message.Message):
    __slots__ = ("initial_interval_seconds", "backoff", "max_interval_seconds", "max_attempts", "jitter", "non_retryable")
    INITIAL_INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    MAX_INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    initial_interval_seconds: float
    backoff: float
    max_interval_seconds: float
    max_attempts: int
    jitter: bool
    non_retryable: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, initial_interval_seconds: _Optional[float] = ..., backoff: _Optional[float] = ..., max_interval_seconds: _Optional[float] = ..., max_attempts: _Optional[int] = ..., jitter: _Optional[bool] = ..., non_retryable: _Optional[_Iterable[str]] = ...) -> None: ...

class StartTaskRequest(_message.Message):
    __slots__ = ("org_id", "task_id", "task_kind", "args", "queue", "priority_seconds", "metadata", "retry", "start_to_close_seconds", "schedule_to_close_seconds", "heartbeat_timeout_seconds", "start_at", "if_running", "if_closed", "idempotency_key_ttl_seconds")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_KIND_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    START_TO_CLOSE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TO_CLOSE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    START_AT_FIELD_NUMBER: _ClassVar[int]
    IF_RUNNING_FIELD_NUMBER: _ClassVar[int]
    IF_CLOSED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    task_id: str
    task_kind: str
    args: _containers.RepeatedScalarFieldContainer[bytes]
    queue: str
    priority_seconds: int
    metadata: _containers.ScalarMap[str, str]
    retry: RetryPolicy
    start_to_close_seconds: float
    schedule_to_close_seconds: float
    heartbeat_timeout_seconds: float
    start_at: int
    if_running: str
    if_closed: str
    idempotency_key_ttl_seconds: int
    def __init__(self, org_id: _Optional[str] = ..., task_id: _Optional[str] = ..., task_kind: _Optional[str] = ..., args: _Optional[_Iterable[bytes]] = ..., queue: _Optional[str] = ..., priority_seconds: _Optional[int] = ..., metadata: _Optional[_Mapping[str, str]] = ..., retry: _Optional[_Union[RetryPolicy, _Mapping]] = ..., start_to_close_seconds: _Optional[float] = ..., schedule_to_close_seconds: _Optional[float] = ..., heartbeat_timeout_seconds: _Optional[float] = ..., start_at: _Optional[int] = ..., if_running: _Optional[str] = ..., if_closed: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ...) -> None: ...

class StartTaskResponse(_message.Message):
    __slots__ = ("workflow_execution_id", "task_id", "task_created", "idempotency_key_used", "idempotency_key_new")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_CREATED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_id: str
    task_created: bool
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_id: _Optional[str] = ..., task_created: _Optional[bool] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class GetTaskRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "task_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    task_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., task_id: _Optional[str] = ...) -> None: ...

class GetTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: StandaloneTask
    def __init__(self, task: _Optional[_Union[StandaloneTask, _Mapping]] = ...) -> None: ...

class StandaloneTask(_message.Message):
    __slots__ = ("workflow_execution_id", "task_id", "task_kind", "status", "queue", "priority_seconds", "args", "metadata", "retry", "start_to_close_seconds", "schedule_to_close_seconds", "heartbeat_timeout_seconds", "created_at", "updated_at", "attempt", "worker", "deferred", "cancel_requested", "progress", "details", "error_type", "error", "result", "scheduled_at", "started_at", "heartbeat_at", "next_attempt_at", "closed_at", "successor")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    START_TO_CLOSE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TO_CLOSE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    DEFERRED_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_AT_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_AT_FIELD_NUMBER: _ClassVar[int]
    CLOSED_AT_FIELD_NUMBER: _ClassVar[int]
    SUCCESSOR_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_id: str
    task_kind: str
    status: str
    queue: str
    priority_seconds: int
    args: _containers.RepeatedScalarFieldContainer[bytes]
    metadata: _containers.ScalarMap[str, str]
    retry: RetryPolicy
    start_to_close_seconds: float
    schedule_to_close_seconds: float
    heartbeat_timeout_seconds: float
    created_at: int
    updated_at: int
    attempt: int
    worker: str
    deferred: bool
    cancel_requested: bool
    progress: float
    details: bytes
    error_type: str
    error: str
    result: bytes
    scheduled_at: int
    started_at: int
    heartbeat_at: int
    next_attempt_at: int
    closed_at: int
    successor: str
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_id: _Optional[str] = ..., task_kind: _Optional[str] = ..., status: _Optional[str] = ..., queue: _Optional[str] = ..., priority_seconds: _Optional[int] = ..., args: _Optional[_Iterable[bytes]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., retry: _Optional[_Union[RetryPolicy, _Mapping]] = ..., start_to_close_seconds: _Optional[float] = ..., schedule_to_close_seconds: _Optional[float] = ..., heartbeat_timeout_seconds: _Optional[float] = ..., created_at: _Optional[int] = ..., updated_at: _Optional[int] = ..., attempt: _Optional[int] = ..., worker: _Optional[str] = ..., deferred: _Optional[bool] = ..., cancel_requested: _Optional[bool] = ..., progress: _Optional[float] = ..., details: _Optional[bytes] = ..., error_type: _Optional[str] = ..., error: _Optional[str] = ..., result: _Optional[bytes] = ..., scheduled_at: _Optional[int] = ..., started_at: _Optional[int] = ..., heartbeat_at: _Optional[int] = ..., next_attempt_at: _Optional[int] = ..., closed_at: _Optional[int] = ..., successor: _Optional[str] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("org_id", "statuses", "task_kind", "queue", "metadata", "limit", "cursor")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    TASK_KIND_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    statuses: _containers.RepeatedScalarFieldContainer[str]
    task_kind: str
    queue: str
    metadata: _containers.ScalarMap[str, str]
    limit: int
    cursor: str
    def __init__(self, org_id: _Optional[str] = ..., statuses: _Optional[_Iterable[str]] = ..., task_kind: _Optional[str] = ..., queue: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("tasks", "next_cursor")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[StandaloneTask]
    next_cursor: str
    def __init__(self, tasks: _Optional[_Iterable[_Union[StandaloneTask, _Mapping]]] = ..., next_cursor: _Optional[str] = ...) -> None: ...

class CompleteTaskRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "task_id", "result", "idempotency_key", "idempotency_key_ttl_seconds")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    task_id: str
    result: bytes
    idempotency_key: str
    idempotency_key_ttl_seconds: int
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., task_id: _Optional[str] = ..., result: _Optional[bytes] = ..., idempotency_key: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ...) -> None: ...

class CompleteTaskResponse(_message.Message):
    __slots__ = ("idempotency_key_used", "idempotency_key_new")
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class FailTaskRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "task_id", "error", "error_type", "non_retryable", "idempotency_key", "idempotency_key_ttl_seconds")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    task_id: str
    error: str
    error_type: str
    non_retryable: bool
    idempotency_key: str
    idempotency_key_ttl_seconds: int
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., task_id: _Optional[str] = ..., error: _Optional[str] = ..., error_type: _Optional[str] = ..., non_retryable: _Optional[bool] = ..., idempotency_key: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ...) -> None: ...

class FailTaskResponse(_message.Message):
    __slots__ = ("idempotency_key_used", "idempotency_key_new")
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class WorkerMessage(_message.Message):
    __slots__ = ("number", "received", "open", "requests", "part", "more")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    number: int
    received: int
    open: OpenSession
    requests: _containers.RepeatedCompositeFieldContainer[Request]
    part: bytes
    more: bool
    def __init__(self, number: _Optional[int] = ..., received: _Optional[int] = ..., open: _Optional[_Union[OpenSession, _Mapping]] = ..., requests: _Optional[_Iterable[_Union[Request, _Mapping]]] = ..., part: _Optional[bytes] = ..., more: _Optional[bool] = ...) -> None: ...

class ServerMessage(_message.Message):
    __slots__ = ("number", "received", "opened", "answers", "work", "ended", "part", "more", "leaving")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    number: int
    received: int
    opened: SessionOpened
    answers: _containers.RepeatedCompositeFieldContainer[Answer]
    work: _containers.RepeatedCompositeFieldContainer[Work]
    ended: Error
    part: bytes
    more: bool
    leaving: Leaving
    def __init__(self, number: _Optional[int] = ..., received: _Optional[int] = ..., opened: _Optional[_Union[SessionOpened, _Mapping]] = ..., answers: _Optional[_Iterable[_Union[Answer, _Mapping]]] = ..., work: _Optional[_Iterable[_Union[Work, _Mapping]]] = ..., ended: _Optional[_Union[Error, _Mapping]] = ..., part: _Optional[bytes] = ..., more: _Optional[bool] = ..., leaving: _Optional[_Union[Leaving, _Mapping]] = ...) -> None: ...

class Leaving(_message.Message):
    __slots__ = ("within_seconds",)
    WITHIN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    within_seconds: float
    def __init__(self, within_seconds: _Optional[float] = ...) -> None: ...

class OpenSession(_message.Message):
    __slots__ = ("org_id", "session", "host", "pid", "queues", "builds", "task_kinds", "triggers", "turn_slots", "task_slots", "lease_seconds", "resume", "replaces", "replaces_proof", "leftovers", "running")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    BUILDS_FIELD_NUMBER: _ClassVar[int]
    TASK_KINDS_FIELD_NUMBER: _ClassVar[int]
    TRIGGERS_FIELD_NUMBER: _ClassVar[int]
    TURN_SLOTS_FIELD_NUMBER: _ClassVar[int]
    TASK_SLOTS_FIELD_NUMBER: _ClassVar[int]
    LEASE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    REPLACES_PROOF_FIELD_NUMBER: _ClassVar[int]
    LEFTOVERS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    session: str
    host: str
    pid: int
    queues: _containers.RepeatedScalarFieldContainer[str]
    builds: _containers.RepeatedCompositeFieldContainer[Build]
    task_kinds: _containers.RepeatedScalarFieldContainer[str]
    triggers: _containers.RepeatedCompositeFieldContainer[Trigger]
    turn_slots: int
    task_slots: int
    lease_seconds: float
    resume: bytes
    replaces: str
    replaces_proof: bytes
    leftovers: _containers.RepeatedCompositeFieldContainer[Request]
    running: _containers.RepeatedCompositeFieldContainer[Attempt]
    def __init__(self, org_id: _Optional[str] = ..., session: _Optional[str] = ..., host: _Optional[str] = ..., pid: _Optional[int] = ..., queues: _Optional[_Iterable[str]] = ..., builds: _Optional[_Iterable[_Union[Build, _Mapping]]] = ..., task_kinds: _Optional[_Iterable[str]] = ..., triggers: _Optional[_Iterable[_Union[Trigger, _Mapping]]] = ..., turn_slots: _Optional[int] = ..., task_slots: _Optional[int] = ..., lease_seconds: _Optional[float] = ..., resume: _Optional[bytes] = ..., replaces: _Optional[str] = ..., replaces_proof: _Optional[bytes] = ..., leftovers: _Optional[_Iterable[_Union[Request, _Mapping]]] = ..., running: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ...) -> None: ...

class Build(_message.Message):
    __slots__ = ("workflow_kind", "workflow_version", "build")
    WORKFLOW_KIND_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_VERSION_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    workflow_kind: str
    workflow_version: str
    build: str
    def __init__(self, workflow_kind: _Optional[str] = ..., workflow_version: _Optional[str] = ..., build: _Optional[str] = ...) -> None: ...

class Trigger(_message.Message):
    __slots__ = ("workflow_kind", "workflow_version", "key", "queue", "where")
    WORKFLOW_KIND_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_VERSION_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    workflow_kind: str
    workflow_version: str
    key: str
    queue: str
    where: str
    def __init__(self, workflow_kind: _Optional[str] = ..., workflow_version: _Optional[str] = ..., key: _Optional[str] = ..., queue: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class SessionOpened(_message.Message):
    __slots__ = ("session", "proof", "resumed", "now", "max_message_bytes", "max_whole_bytes", "org_id", "max_output_bytes", "max_output_chunks")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_WHOLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    session: str
    proof: bytes
    resumed: bool
    now: int
    max_message_bytes: int
    max_whole_bytes: int
    org_id: str
    max_output_bytes: int
    max_output_chunks: int
    def __init__(self, session: _Optional[str] = ..., proof: _Optional[bytes] = ..., resumed: _Optional[bool] = ..., now: _Optional[int] = ..., max_message_bytes: _Optional[int] = ..., max_whole_bytes: _Optional[int] = ..., org_id: _Optional[str] = ..., max_output_bytes: _Optional[int] = ..., max_output_chunks: _Optional[int] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "message", "details")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    details: bytes
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., details: _Optional[bytes] = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ("epoch", "nonce")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    nonce: int
    def __init__(self, epoch: _Optional[int] = ..., nonce: _Optional[int] = ...) -> None: ...

class Work(_message.Message):
    __slots__ = ("turn", "news", "task", "task_stop", "ended", "lost_turn", "query")
    TURN_FIELD_NUMBER: _ClassVar[int]
    NEWS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TASK_STOP_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    LOST_TURN_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    turn: TurnWork
    news: News
    task: TaskWork
    task_stop: TaskStop
    ended: ExecutionEnded
    lost_turn: LostTurn
    query: QueryWork
    def __init__(self, turn: _Optional[_Union[TurnWork, _Mapping]] = ..., news: _Optional[_Union[News, _Mapping]] = ..., task: _Optional[_Union[TaskWork, _Mapping]] = ..., task_stop: _Optional[_Union[TaskStop, _Mapping]] = ..., ended: _Optional[_Union[ExecutionEnded, _Mapping]] = ..., lost_turn: _Optional[_Union[LostTurn, _Mapping]] = ..., query: _Optional[_Union[QueryWork, _Mapping]] = ...) -> None: ...

class TurnWork(_message.Message):
    __slots__ = ("workflow_execution_id", "workflow_id", "workflow_kind", "workflow_version", "token", "last_sequence", "events", "scheduled_at", "token_key")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_KIND_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_VERSION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_KEY_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    workflow_id: str
    workflow_kind: str
    workflow_version: str
    token: Token
    last_sequence: int
    events: _containers.RepeatedCompositeFieldContainer[HistoryEvent]
    scheduled_at: int
    token_key: bytes
    def __init__(self, workflow_execution_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., workflow_kind: _Optional[str] = ..., workflow_version: _Optional[str] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., last_sequence: _Optional[int] = ..., events: _Optional[_Iterable[_Union[HistoryEvent, _Mapping]]] = ..., scheduled_at: _Optional[int] = ..., token_key: _Optional[bytes] = ...) -> None: ...

class News(_message.Message):
    __slots__ = ("workflow_execution_id", "last_sequence", "events")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    last_sequence: int
    events: _containers.RepeatedCompositeFieldContainer[HistoryEvent]
    def __init__(self, workflow_execution_id: _Optional[str] = ..., last_sequence: _Optional[int] = ..., events: _Optional[_Iterable[_Union[HistoryEvent, _Mapping]]] = ...) -> None: ...

class TaskWork(_message.Message):
    __slots__ = ("workflow_execution_id", "task_no", "kind", "token", "input", "start_to_close_seconds", "schedule_to_close_seconds", "heartbeat_seconds", "scheduled_at", "started_at", "details", "token_key", "output_sequence")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NO_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    START_TO_CLOSE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TO_CLOSE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_KEY_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_no: int
    kind: str
    token: Token
    input: bytes
    start_to_close_seconds: float
    schedule_to_close_seconds: float
    heartbeat_seconds: float
    scheduled_at: int
    started_at: int
    details: bytes
    token_key: bytes
    output_sequence: int
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_no: _Optional[int] = ..., kind: _Optional[str] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., input: _Optional[bytes] = ..., start_to_close_seconds: _Optional[float] = ..., schedule_to_close_seconds: _Optional[float] = ..., heartbeat_seconds: _Optional[float] = ..., scheduled_at: _Optional[int] = ..., started_at: _Optional[int] = ..., details: _Optional[bytes] = ..., token_key: _Optional[bytes] = ..., output_sequence: _Optional[int] = ...) -> None: ...

class TaskStop(_message.Message):
    __slots__ = ("workflow_execution_id", "task_no", "attempt", "reason")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NO_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_no: int
    attempt: int
    reason: str
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_no: _Optional[int] = ..., attempt: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class ExecutionEnded(_message.Message):
    __slots__ = ("workflow_execution_id",)
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    def __init__(self, workflow_execution_id: _Optional[str] = ...) -> None: ...

class LostTurn(_message.Message):
    __slots__ = ("workflow_execution_id", "epoch")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    epoch: int
    def __init__(self, workflow_execution_id: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class QueryWork(_message.Message):
    __slots__ = ("query_id", "workflow_execution_id", "workflow_kind", "workflow_version", "query_name", "input", "as_of", "last_sequence", "token_key")
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_KIND_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_VERSION_FIELD_NUMBER: _ClassVar[int]
    QUERY_NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_KEY_FIELD_NUMBER: _ClassVar[int]
    query_id: str
    workflow_execution_id: str
    workflow_kind: str
    workflow_version: str
    query_name: str
    input: bytes
    as_of: int
    last_sequence: int
    token_key: bytes
    def __init__(self, query_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., workflow_kind: _Optional[str] = ..., workflow_version: _Optional[str] = ..., query_name: _Optional[str] = ..., input: _Optional[bytes] = ..., as_of: _Optional[int] = ..., last_sequence: _Optional[int] = ..., token_key: _Optional[bytes] = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("id", "complete_turn", "park_turn", "complete_task", "fail_task", "issue_task_token", "defer_task", "heartbeat", "release", "answer_query", "drain", "close", "pause")
    ID_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_TURN_FIELD_NUMBER: _ClassVar[int]
    PARK_TURN_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_TASK_FIELD_NUMBER: _ClassVar[int]
    FAIL_TASK_FIELD_NUMBER: _ClassVar[int]
    ISSUE_TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DEFER_TASK_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    ANSWER_QUERY_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    id: int
    complete_turn: CompleteTurn
    park_turn: ParkTurn
    complete_task: CompleteTask
    fail_task: FailTask
    issue_task_token: IssueTaskToken
    defer_task: DeferTask
    heartbeat: Heartbeat
    release: ReleaseWork
    answer_query: AnswerQuery
    drain: Drain
    close: CloseSession
    pause: Pause
    def __init__(self, id: _Optional[int] = ..., complete_turn: _Optional[_Union[CompleteTurn, _Mapping]] = ..., park_turn: _Optional[_Union[ParkTurn, _Mapping]] = ..., complete_task: _Optional[_Union[CompleteTask, _Mapping]] = ..., fail_task: _Optional[_Union[FailTask, _Mapping]] = ..., issue_task_token: _Optional[_Union[IssueTaskToken, _Mapping]] = ..., defer_task: _Optional[_Union[DeferTask, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., release: _Optional[_Union[ReleaseWork, _Mapping]] = ..., answer_query: _Optional[_Union[AnswerQuery, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ..., close: _Optional[_Union[CloseSession, _Mapping]] = ..., pause: _Optional[_Union[Pause, _Mapping]] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("id", "error", "turn", "heartbeat")
    ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    id: int
    error: Error
    turn: TurnAnswer
    heartbeat: HeartbeatAnswer
    def __init__(self, id: _Optional[int] = ..., error: _Optional[_Union[Error, _Mapping]] = ..., turn: _Optional[_Union[TurnAnswer, _Mapping]] = ..., heartbeat: _Optional[_Union[HeartbeatAnswer, _Mapping]] = ...) -> None: ...

class CompleteTurn(_message.Message):
    __slots__ = ("workflow_execution_id", "token", "base_sequence", "turns", "steps", "after_steps", "waiting_for", "unread", "refused")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    BASE_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    AFTER_STEPS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    token: Token
    base_sequence: int
    turns: bytes
    steps: _containers.RepeatedCompositeFieldContainer[HistoryEvent]
    after_steps: bytes
    waiting_for: bytes
    unread: _containers.RepeatedScalarFieldContainer[int]
    refused: _containers.RepeatedCompositeFieldContainer[RefusedSignal]
    def __init__(self, workflow_execution_id: _Optional[str] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., base_sequence: _Optional[int] = ..., turns: _Optional[bytes] = ..., steps: _Optional[_Iterable[_Union[HistoryEvent, _Mapping]]] = ..., after_steps: _Optional[bytes] = ..., waiting_for: _Optional[bytes] = ..., unread: _Optional[_Iterable[int]] = ..., refused: _Optional[_Iterable[_Union[RefusedSignal, _Mapping]]] = ...) -> None: ...

class RefusedSignal(_message.Message):
    __slots__ = ("sequence", "reason")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    reason: str
    def __init__(self, sequence: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class TurnAnswer(_message.Message):
    __slots__ = ("verdict", "first_sequence", "last_sequence", "released", "closed")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    verdict: str
    first_sequence: int
    last_sequence: int
    released: bool
    closed: bool
    def __init__(self, verdict: _Optional[str] = ..., first_sequence: _Optional[int] = ..., last_sequence: _Optional[int] = ..., released: _Optional[bool] = ..., closed: _Optional[bool] = ...) -> None: ...

class ParkTurn(_message.Message):
    __slots__ = ("workflow_execution_id", "token", "reason")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    token: Token
    reason: bytes
    def __init__(self, workflow_execution_id: _Optional[str] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., reason: _Optional[bytes] = ...) -> None: ...

class CompleteTask(_message.Message):
    __slots__ = ("workflow_execution_id", "task_no", "token", "result", "output")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NO_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_no: int
    token: Token
    result: bytes
    output: _containers.RepeatedCompositeFieldContainer[OutputChunk]
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_no: _Optional[int] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., result: _Optional[bytes] = ..., output: _Optional[_Iterable[_Union[OutputChunk, _Mapping]]] = ...) -> None: ...

class OutputChunk(_message.Message):
    __slots__ = ("sequence", "data")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    data: bytes
    def __init__(self, sequence: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class FailTask(_message.Message):
    __slots__ = ("workflow_execution_id", "task_no", "token", "failure", "details", "output")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NO_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_no: int
    token: Token
    failure: bytes
    details: bytes
    output: _containers.RepeatedCompositeFieldContainer[OutputChunk]
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_no: _Optional[int] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., failure: _Optional[bytes] = ..., details: _Optional[bytes] = ..., output: _Optional[_Iterable[_Union[OutputChunk, _Mapping]]] = ...) -> None: ...

class IssueTaskToken(_message.Message):
    __slots__ = ("workflow_execution_id", "task_no", "token", "token_hash")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NO_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOKEN_HASH_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_no: int
    token: Token
    token_hash: str
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_no: _Optional[int] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., token_hash: _Optional[str] = ...) -> None: ...

class DeferTask(_message.Message):
    __slots__ = ("workflow_execution_id", "task_no", "token", "token_hash", "details", "output")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NO_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOKEN_HASH_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_no: int
    token: Token
    token_hash: str
    details: bytes
    output: _containers.RepeatedCompositeFieldContainer[OutputChunk]
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_no: _Optional[int] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., token_hash: _Optional[str] = ..., details: _Optional[bytes] = ..., output: _Optional[_Iterable[_Union[OutputChunk, _Mapping]]] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("lease_seconds", "tasks", "running")
    LEASE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    lease_seconds: float
    tasks: _containers.RepeatedCompositeFieldContainer[TaskBeat]
    running: _containers.RepeatedCompositeFieldContainer[Attempt]
    def __init__(self, lease_seconds: _Optional[float] = ..., tasks: _Optional[_Iterable[_Union[TaskBeat, _Mapping]]] = ..., running: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ...) -> None: ...

class TaskBeat(_message.Message):
    __slots__ = ("workflow_execution_id", "task_no", "token", "details", "progress", "output")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NO_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_no: int
    token: Token
    details: bytes
    progress: float
    output: _containers.RepeatedCompositeFieldContainer[OutputChunk]
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_no: _Optional[int] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., details: _Optional[bytes] = ..., progress: _Optional[float] = ..., output: _Optional[_Iterable[_Union[OutputChunk, _Mapping]]] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("workflow_execution_id", "task_no", "token")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NO_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_no: int
    token: Token
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_no: _Optional[int] = ..., token: _Optional[_Union[Token, _Mapping]] = ...) -> None: ...

class HeartbeatAnswer(_message.Message):
    __slots__ = ("alive", "stale")
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    alive: bool
    stale: _containers.RepeatedCompositeFieldContainer[StaleAttempt]
    def __init__(self, alive: _Optional[bool] = ..., stale: _Optional[_Iterable[_Union[StaleAttempt, _Mapping]]] = ...) -> None: ...

class StaleAttempt(_message.Message):
    __slots__ = ("workflow_execution_id", "task_no", "attempt")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NO_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_no: int
    attempt: int
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_no: _Optional[int] = ..., attempt: _Optional[int] = ...) -> None: ...

class ReleaseWork(_message.Message):
    __slots__ = ("turns", "tasks")
    TURNS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    turns: _containers.RepeatedCompositeFieldContainer[HeldTurn]
    tasks: _containers.RepeatedCompositeFieldContainer[Attempt]
    def __init__(self, turns: _Optional[_Iterable[_Union[HeldTurn, _Mapping]]] = ..., tasks: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ...) -> None: ...

class HeldTurn(_message.Message):
    __slots__ = ("workflow_execution_id", "token")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    token: Token
    def __init__(self, workflow_execution_id: _Optional[str] = ..., token: _Optional[_Union[Token, _Mapping]] = ...) -> None: ...

class AnswerQuery(_message.Message):
    __slots__ = ("query_id", "result", "failure")
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    query_id: str
    result: bytes
    failure: bytes
    def __init__(self, query_id: _Optional[str] = ..., result: _Optional[bytes] = ..., failure: _Optional[bytes] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Pause(_message.Message):
    __slots__ = ("paused",)
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    paused: bool
    def __init__(self, paused: _Optional[bool] = ...) -> None: ...

class CloseSession(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
