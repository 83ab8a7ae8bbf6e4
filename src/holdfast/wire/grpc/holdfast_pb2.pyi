from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SignalWithStartWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_id", "workflow_kind", "workflow_input", "queue", "priority_seconds", "workflow_version", "metadata", "signal_name", "signal_value", "idempotency_key_ttl_seconds", "execution_timeout_seconds", "start_at", "if_closed", "request_id")
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
    EXECUTION_TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    START_AT_FIELD_NUMBER: _ClassVar[int]
    IF_CLOSED_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
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
    execution_timeout_seconds: float
    start_at: int
    if_closed: str
    request_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., workflow_kind: _Optional[str] = ..., workflow_input: _Optional[bytes] = ..., queue: _Optional[str] = ..., priority_seconds: _Optional[int] = ..., workflow_version: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., signal_name: _Optional[str] = ..., signal_value: _Optional[bytes] = ..., idempotency_key_ttl_seconds: _Optional[int] = ..., execution_timeout_seconds: _Optional[float] = ..., start_at: _Optional[int] = ..., if_closed: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class SignalWithStartWorkflowResponse(_message.Message):
    __slots__ = ("workflow_execution_id", "workflow_created", "signal_event_sequence", "signal_delivered", "idempotency_key_used", "idempotency_key_new")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_CREATED_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_EVENT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_DELIVERED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    workflow_created: bool
    signal_event_sequence: int
    signal_delivered: bool
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, workflow_execution_id: _Optional[str] = ..., workflow_created: _Optional[bool] = ..., signal_event_sequence: _Optional[int] = ..., signal_delivered: _Optional[bool] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class SignalWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "signal_name", "signal_value", "addressed_to", "request_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_VALUE_FIELD_NUMBER: _ClassVar[int]
    ADDRESSED_TO_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    signal_name: str
    signal_value: bytes
    addressed_to: str
    request_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., signal_name: _Optional[str] = ..., signal_value: _Optional[bytes] = ..., addressed_to: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class SignalWorkflowResponse(_message.Message):
    __slots__ = ("signal_event_sequence", "signal_delivered")
    SIGNAL_EVENT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_DELIVERED_FIELD_NUMBER: _ClassVar[int]
    signal_event_sequence: int
    signal_delivered: bool
    def __init__(self, signal_event_sequence: _Optional[int] = ..., signal_delivered: _Optional[bool] = ...) -> None: ...

class StartWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_id", "workflow_kind", "workflow_input", "queue", "priority_seconds", "workflow_version", "metadata", "idempotency_key_ttl_seconds", "execution_timeout_seconds", "start_at", "if_running", "if_closed", "request_id")
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
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
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
    request_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., workflow_kind: _Optional[str] = ..., workflow_input: _Optional[bytes] = ..., queue: _Optional[str] = ..., priority_seconds: _Optional[int] = ..., workflow_version: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., idempotency_key_ttl_seconds: _Optional[int] = ..., execution_timeout_seconds: _Optional[float] = ..., start_at: _Optional[int] = ..., if_running: _Optional[str] = ..., if_closed: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("changed", "successor")
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    SUCCESSOR_FIELD_NUMBER: _ClassVar[int]
    changed: bool
    successor: str
    def __init__(self, changed: _Optional[bool] = ..., successor: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("changed", "successor")
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    SUCCESSOR_FIELD_NUMBER: _ClassVar[int]
    changed: bool
    successor: str
    def __init__(self, changed: _Optional[bool] = ..., successor: _Optional[str] = ...) -> None: ...

class ResolvePromiseRequest(_message.Message):
    __slots__ = ("promise_id", "value", "idempotency_key", "idempotency_key_ttl_seconds", "org_id", "allow_early", "request_id")
    PROMISE_ID_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOW_EARLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    promise_id: str
    value: bytes
    idempotency_key: str
    idempotency_key_ttl_seconds: int
    org_id: str
    allow_early: bool
    request_id: str
    def __init__(self, promise_id: _Optional[str] = ..., value: _Optional[bytes] = ..., idempotency_key: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ..., org_id: _Optional[str] = ..., allow_early: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResolvePromiseResponse(_message.Message):
    __slots__ = ("already_resolved", "idempotency_key_used", "idempotency_key_new", "promise_id", "state", "value", "failure")
    ALREADY_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    PROMISE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    already_resolved: bool
    idempotency_key_used: bool
    idempotency_key_new: bool
    promise_id: str
    state: str
    value: bytes
    failure: Failure
    def __init__(self, already_resolved: _Optional[bool] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ..., promise_id: _Optional[str] = ..., state: _Optional[str] = ..., value: _Optional[bytes] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class RejectPromiseRequest(_message.Message):
    __slots__ = ("promise_id", "error", "idempotency_key", "idempotency_key_ttl_seconds", "org_id", "error_type", "allow_early", "request_id")
    PROMISE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    ALLOW_EARLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    promise_id: str
    error: str
    idempotency_key: str
    idempotency_key_ttl_seconds: int
    org_id: str
    error_type: str
    allow_early: bool
    request_id: str
    def __init__(self, promise_id: _Optional[str] = ..., error: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ..., org_id: _Optional[str] = ..., error_type: _Optional[str] = ..., allow_early: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class RejectPromiseResponse(_message.Message):
    __slots__ = ("already_resolved", "idempotency_key_used", "idempotency_key_new", "promise_id", "state", "value", "failure")
    ALREADY_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    PROMISE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    already_resolved: bool
    idempotency_key_used: bool
    idempotency_key_new: bool
    promise_id: str
    state: str
    value: bytes
    failure: Failure
    def __init__(self, already_resolved: _Optional[bool] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ..., promise_id: _Optional[str] = ..., state: _Optional[str] = ..., value: _Optional[bytes] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class PublishEventRequest(_message.Message):
    __slots__ = ("org_id", "key", "data", "idempotency_key", "idempotency_key_ttl_seconds", "expire_after_seconds", "delivery", "consume_on_read", "request_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_AFTER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    CONSUME_ON_READ_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    key: str
    data: bytes
    idempotency_key: str
    idempotency_key_ttl_seconds: int
    expire_after_seconds: float
    delivery: str
    consume_on_read: bool
    request_id: str
    def __init__(self, org_id: _Optional[str] = ..., key: _Optional[str] = ..., data: _Optional[bytes] = ..., idempotency_key: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ..., expire_after_seconds: _Optional[float] = ..., delivery: _Optional[str] = ..., consume_on_read: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class PublishEventResponse(_message.Message):
    __slots__ = ("event_id", "delivered", "retained", "idempotency_key_used", "idempotency_key_new", "started", "done")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    RETAINED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    event_id: int
    delivered: int
    retained: bool
    idempotency_key_used: bool
    idempotency_key_new: bool
    started: _containers.RepeatedScalarFieldContainer[str]
    done: bool
    def __init__(self, event_id: _Optional[int] = ..., delivered: _Optional[int] = ..., retained: _Optional[bool] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ..., started: _Optional[_Iterable[str]] = ..., done: _Optional[bool] = ...) -> None: ...

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
    __slots__ = ("org_id", "workflow_execution_id", "after", "limit", "with_snapshot")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    WITH_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    after: int
    limit: int
    with_snapshot: bool
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., after: _Optional[int] = ..., limit: _Optional[int] = ..., with_snapshot: _Optional[bool] = ...) -> None: ...

class GetHistoryResponse(_message.Message):
    __slots__ = ("events", "more", "snapshot")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[HistoryEvent]
    more: bool
    snapshot: Snapshot
    def __init__(self, events: _Optional[_Iterable[_Union[HistoryEvent, _Mapping]]] = ..., more: _Optional[bool] = ..., snapshot: _Optional[_Union[Snapshot, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("initial_interval_seconds", "backoff", "max_interval_seconds", "max_attempts", "jitter", "non_retryable", "initial_interval_s", "max_interval_s")
    INITIAL_INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    MAX_INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    INITIAL_INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    MAX_INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    initial_interval_seconds: float
    backoff: float
    max_interval_seconds: float
    max_attempts: int
    jitter: bool
    non_retryable: _containers.RepeatedScalarFieldContainer[str]
    initial_interval_s: float
    max_interval_s: float
    def __init__(self, initial_interval_seconds: _Optional[float] = ..., backoff: _Optional[float] = ..., max_interval_seconds: _Optional[float] = ..., max_attempts: _Optional[int] = ..., jitter: _Optional[bool] = ..., non_retryable: _Optional[_Iterable[str]] = ..., initial_interval_s: _Optional[float] = ..., max_interval_s: _Optional[float] = ...) -> None: ...

class StartTaskRequest(_message.Message):
    __slots__ = ("org_id", "task_id", "task_kind", "args", "queue", "priority_seconds", "metadata", "retry", "start_to_close_seconds", "schedule_to_close_seconds", "heartbeat_timeout_seconds", "start_at", "if_running", "if_closed", "idempotency_key_ttl_seconds", "input", "request_id")
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
    INPUT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
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
    input: bytes
    request_id: str
    def __init__(self, org_id: _Optional[str] = ..., task_id: _Optional[str] = ..., task_kind: _Optional[str] = ..., args: _Optional[_Iterable[bytes]] = ..., queue: _Optional[str] = ..., priority_seconds: _Optional[int] = ..., metadata: _Optional[_Mapping[str, str]] = ..., retry: _Optional[_Union[RetryPolicy, _Mapping]] = ..., start_to_close_seconds: _Optional[float] = ..., schedule_to_close_seconds: _Optional[float] = ..., heartbeat_timeout_seconds: _Optional[float] = ..., start_at: _Optional[int] = ..., if_running: _Optional[str] = ..., if_closed: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ..., input: _Optional[bytes] = ..., request_id: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("org_id", "workflow_execution_id", "task_id", "task_execution_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    task_id: str
    task_execution_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., task_id: _Optional[str] = ..., task_execution_id: _Optional[str] = ...) -> None: ...

class GetTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: StandaloneTask
    def __init__(self, task: _Optional[_Union[StandaloneTask, _Mapping]] = ...) -> None: ...

class StandaloneTask(_message.Message):
    __slots__ = ("workflow_execution_id", "task_id", "task_kind", "status", "queue", "priority_seconds", "args", "metadata", "retry", "start_to_close_seconds", "schedule_to_close_seconds", "heartbeat_timeout_seconds", "created_at", "updated_at", "attempt", "worker", "deferred", "cancel_requested", "progress", "details", "error_type", "error", "result", "scheduled_at", "started_at", "heartbeat_at", "next_attempt_at", "closed_at", "successor", "timeouts", "last_failure")
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
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    LAST_FAILURE_FIELD_NUMBER: _ClassVar[int]
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
    timeouts: TaskTimeouts
    last_failure: Failure
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_id: _Optional[str] = ..., task_kind: _Optional[str] = ..., status: _Optional[str] = ..., queue: _Optional[str] = ..., priority_seconds: _Optional[int] = ..., args: _Optional[_Iterable[bytes]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., retry: _Optional[_Union[RetryPolicy, _Mapping]] = ..., start_to_close_seconds: _Optional[float] = ..., schedule_to_close_seconds: _Optional[float] = ..., heartbeat_timeout_seconds: _Optional[float] = ..., created_at: _Optional[int] = ..., updated_at: _Optional[int] = ..., attempt: _Optional[int] = ..., worker: _Optional[str] = ..., deferred: _Optional[bool] = ..., cancel_requested: _Optional[bool] = ..., progress: _Optional[float] = ..., details: _Optional[bytes] = ..., error_type: _Optional[str] = ..., error: _Optional[str] = ..., result: _Optional[bytes] = ..., scheduled_at: _Optional[int] = ..., started_at: _Optional[int] = ..., heartbeat_at: _Optional[int] = ..., next_attempt_at: _Optional[int] = ..., closed_at: _Optional[int] = ..., successor: _Optional[str] = ..., timeouts: _Optional[_Union[TaskTimeouts, _Mapping]] = ..., last_failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("org_id", "workflow_execution_id", "task_id", "result", "idempotency_key", "idempotency_key_ttl_seconds", "task_execution_id", "request_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TASK_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    task_id: str
    result: bytes
    idempotency_key: str
    idempotency_key_ttl_seconds: int
    task_execution_id: str
    request_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., task_id: _Optional[str] = ..., result: _Optional[bytes] = ..., idempotency_key: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ..., task_execution_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class CompleteTaskResponse(_message.Message):
    __slots__ = ("idempotency_key_used", "idempotency_key_new", "promise_id", "state", "already_resolved", "value", "failure")
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    PROMISE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ALREADY_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    idempotency_key_used: bool
    idempotency_key_new: bool
    promise_id: str
    state: str
    already_resolved: bool
    value: bytes
    failure: Failure
    def __init__(self, idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ..., promise_id: _Optional[str] = ..., state: _Optional[str] = ..., already_resolved: _Optional[bool] = ..., value: _Optional[bytes] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class FailTaskRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "task_id", "error", "error_type", "non_retryable", "idempotency_key", "idempotency_key_ttl_seconds", "task_execution_id", "request_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TASK_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    task_id: str
    error: str
    error_type: str
    non_retryable: bool
    idempotency_key: str
    idempotency_key_ttl_seconds: int
    task_execution_id: str
    request_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., task_id: _Optional[str] = ..., error: _Optional[str] = ..., error_type: _Optional[str] = ..., non_retryable: _Optional[bool] = ..., idempotency_key: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[int] = ..., task_execution_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class FailTaskResponse(_message.Message):
    __slots__ = ("idempotency_key_used", "idempotency_key_new", "promise_id", "state", "already_resolved", "value", "failure")
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    PROMISE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ALREADY_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    idempotency_key_used: bool
    idempotency_key_new: bool
    promise_id: str
    state: str
    already_resolved: bool
    value: bytes
    failure: Failure
    def __init__(self, idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ..., promise_id: _Optional[str] = ..., state: _Optional[str] = ..., already_resolved: _Optional[bool] = ..., value: _Optional[bytes] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class ListDefinitionsRequest(_message.Message):
    __slots__ = ("org_id", "limit")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    limit: int
    def __init__(self, org_id: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class DefinitionList(_message.Message):
    __slots__ = ("definitions",)
    DEFINITIONS_FIELD_NUMBER: _ClassVar[int]
    definitions: _containers.RepeatedCompositeFieldContainer[DefinitionInfo]
    def __init__(self, definitions: _Optional[_Iterable[_Union[DefinitionInfo, _Mapping]]] = ...) -> None: ...

class DefinitionInfo(_message.Message):
    __slots__ = ("workflow_kind", "workflow_version", "build", "registered_at")
    WORKFLOW_KIND_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_VERSION_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_AT_FIELD_NUMBER: _ClassVar[int]
    workflow_kind: str
    workflow_version: str
    build: str
    registered_at: int
    def __init__(self, workflow_kind: _Optional[str] = ..., workflow_version: _Optional[str] = ..., build: _Optional[str] = ..., registered_at: _Optional[int] = ...) -> None: ...

class ListWorkersRequest(_message.Message):
    __slots__ = ("org_id", "limit")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    limit: int
    def __init__(self, org_id: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class WorkerList(_message.Message):
    __slots__ = ("workers",)
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedCompositeFieldContainer[WorkerInfo]
    def __init__(self, workers: _Optional[_Iterable[_Union[WorkerInfo, _Mapping]]] = ...) -> None: ...

class WorkerInfo(_message.Message):
    __slots__ = ("worker_id", "host", "pid", "started_at", "lease_until", "pause")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    LEASE_UNTIL_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    host: str
    pid: int
    started_at: int
    lease_until: int
    pause: PauseInfo
    def __init__(self, worker_id: _Optional[str] = ..., host: _Optional[str] = ..., pid: _Optional[int] = ..., started_at: _Optional[int] = ..., lease_until: _Optional[int] = ..., pause: _Optional[_Union[PauseInfo, _Mapping]] = ...) -> None: ...

class PauseInfo(_message.Message):
    __slots__ = ("mode", "since", "reason")
    MODE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    mode: str
    since: int
    reason: str
    def __init__(self, mode: _Optional[str] = ..., since: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ("org_id", "limit")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    limit: int
    def __init__(self, org_id: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class QueueList(_message.Message):
    __slots__ = ("queues",)
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[QueueInfo]
    def __init__(self, queues: _Optional[_Iterable[_Union[QueueInfo, _Mapping]]] = ...) -> None: ...

class QueueInfo(_message.Message):
    __slots__ = ("queue", "turns", "tasks", "since", "paused", "pause")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    turns: int
    tasks: int
    since: int
    paused: bool
    pause: PauseInfo
    def __init__(self, queue: _Optional[str] = ..., turns: _Optional[int] = ..., tasks: _Optional[int] = ..., since: _Optional[int] = ..., paused: _Optional[bool] = ..., pause: _Optional[_Union[PauseInfo, _Mapping]] = ...) -> None: ...

class PauseQueueRequest(_message.Message):
    __slots__ = ("org_id", "reason", "queue")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    reason: str
    queue: str
    def __init__(self, org_id: _Optional[str] = ..., reason: _Optional[str] = ..., queue: _Optional[str] = ...) -> None: ...

class PauseChange(_message.Message):
    __slots__ = ("name", "changed", "paused", "pause")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    name: str
    changed: bool
    paused: bool
    pause: PauseInfo
    def __init__(self, name: _Optional[str] = ..., changed: _Optional[bool] = ..., paused: _Optional[bool] = ..., pause: _Optional[_Union[PauseInfo, _Mapping]] = ...) -> None: ...

class ResumeQueueRequest(_message.Message):
    __slots__ = ("org_id", "reason", "queue")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    reason: str
    queue: str
    def __init__(self, org_id: _Optional[str] = ..., reason: _Optional[str] = ..., queue: _Optional[str] = ...) -> None: ...

class PauseWorkerRequest(_message.Message):
    __slots__ = ("org_id", "reason", "worker_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    reason: str
    worker_id: str
    def __init__(self, org_id: _Optional[str] = ..., reason: _Optional[str] = ..., worker_id: _Optional[str] = ...) -> None: ...

class ResumeWorkerRequest(_message.Message):
    __slots__ = ("org_id", "reason", "worker_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    reason: str
    worker_id: str
    def __init__(self, org_id: _Optional[str] = ..., reason: _Optional[str] = ..., worker_id: _Optional[str] = ...) -> None: ...

class DrainWorkerRequest(_message.Message):
    __slots__ = ("org_id", "reason", "worker_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    reason: str
    worker_id: str
    def __init__(self, org_id: _Optional[str] = ..., reason: _Optional[str] = ..., worker_id: _Optional[str] = ...) -> None: ...

class ResumeWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ...) -> None: ...

class Changed(_message.Message):
    __slots__ = ("changed", "successor")
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    SUCCESSOR_FIELD_NUMBER: _ClassVar[int]
    changed: bool
    successor: str
    def __init__(self, changed: _Optional[bool] = ..., successor: _Optional[str] = ...) -> None: ...

class ResetWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "to_event", "reason", "reapply_signals", "request_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TO_EVENT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REAPPLY_SIGNALS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    to_event: int
    reason: str
    reapply_signals: bool
    request_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., to_event: _Optional[int] = ..., reason: _Optional[str] = ..., reapply_signals: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class StartAnswer(_message.Message):
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

class ForkWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "at_event", "workflow_id", "reapply_signals", "request_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    AT_EVENT_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    REAPPLY_SIGNALS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    at_event: int
    workflow_id: str
    reapply_signals: bool
    request_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., at_event: _Optional[int] = ..., workflow_id: _Optional[str] = ..., reapply_signals: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class RetryWorkflowRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "reason", "request_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    reason: str
    request_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateKeyRequest(_message.Message):
    __slots__ = ("org_id", "name", "role", "expires_in_seconds")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_IN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    name: str
    role: str
    expires_in_seconds: float
    def __init__(self, org_id: _Optional[str] = ..., name: _Optional[str] = ..., role: _Optional[str] = ..., expires_in_seconds: _Optional[float] = ...) -> None: ...

class CreatedKey(_message.Message):
    __slots__ = ("key", "text")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    key: KeyInfo
    text: str
    def __init__(self, key: _Optional[_Union[KeyInfo, _Mapping]] = ..., text: _Optional[str] = ...) -> None: ...

class KeyInfo(_message.Message):
    __slots__ = ("key_id", "name", "role", "state", "hint", "created_at", "created_by", "expires_at", "revoked_at", "last_used_at", "rotated_at", "old_until")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    REVOKED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_AT_FIELD_NUMBER: _ClassVar[int]
    ROTATED_AT_FIELD_NUMBER: _ClassVar[int]
    OLD_UNTIL_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    name: str
    role: str
    state: str
    hint: str
    created_at: int
    created_by: str
    expires_at: int
    revoked_at: int
    last_used_at: int
    rotated_at: int
    old_until: int
    def __init__(self, key_id: _Optional[str] = ..., name: _Optional[str] = ..., role: _Optional[str] = ..., state: _Optional[str] = ..., hint: _Optional[str] = ..., created_at: _Optional[int] = ..., created_by: _Optional[str] = ..., expires_at: _Optional[int] = ..., revoked_at: _Optional[int] = ..., last_used_at: _Optional[int] = ..., rotated_at: _Optional[int] = ..., old_until: _Optional[int] = ...) -> None: ...

class ListKeysRequest(_message.Message):
    __slots__ = ("org_id", "before", "limit")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    before: str
    limit: int
    def __init__(self, org_id: _Optional[str] = ..., before: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class KeyList(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[KeyInfo]
    def __init__(self, keys: _Optional[_Iterable[_Union[KeyInfo, _Mapping]]] = ...) -> None: ...

class GetKeyRequest(_message.Message):
    __slots__ = ("org_id", "key_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    key_id: str
    def __init__(self, org_id: _Optional[str] = ..., key_id: _Optional[str] = ...) -> None: ...

class RevokeKeyRequest(_message.Message):
    __slots__ = ("org_id", "key_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    key_id: str
    def __init__(self, org_id: _Optional[str] = ..., key_id: _Optional[str] = ...) -> None: ...

class RotateKeyRequest(_message.Message):
    __slots__ = ("org_id", "key_id", "overlap_seconds")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    key_id: str
    overlap_seconds: float
    def __init__(self, org_id: _Optional[str] = ..., key_id: _Optional[str] = ..., overlap_seconds: _Optional[float] = ...) -> None: ...

class DeleteOrgRequest(_message.Message):
    __slots__ = ("org_id", "confirm")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    confirm: str
    def __init__(self, org_id: _Optional[str] = ..., confirm: _Optional[str] = ...) -> None: ...

class OrgDeleted(_message.Message):
    __slots__ = ("org", "closed_at")
    ORG_FIELD_NUMBER: _ClassVar[int]
    CLOSED_AT_FIELD_NUMBER: _ClassVar[int]
    org: str
    closed_at: int
    def __init__(self, org: _Optional[str] = ..., closed_at: _Optional[int] = ...) -> None: ...

class ListAuditRequest(_message.Message):
    __slots__ = ("org_id", "before", "limit")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    before: int
    limit: int
    def __init__(self, org_id: _Optional[str] = ..., before: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class AuditList(_message.Message):
    __slots__ = ("acts",)
    ACTS_FIELD_NUMBER: _ClassVar[int]
    acts: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    def __init__(self, acts: _Optional[_Iterable[_Union[AuditEntry, _Mapping]]] = ...) -> None: ...

class AuditEntry(_message.Message):
    __slots__ = ("sequence", "at", "actor", "action", "subject", "address", "outcome", "detail", "digest")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    at: int
    actor: str
    action: str
    subject: str
    address: str
    outcome: str
    detail: str
    digest: str
    def __init__(self, sequence: _Optional[int] = ..., at: _Optional[int] = ..., actor: _Optional[str] = ..., action: _Optional[str] = ..., subject: _Optional[str] = ..., address: _Optional[str] = ..., outcome: _Optional[str] = ..., detail: _Optional[str] = ..., digest: _Optional[str] = ...) -> None: ...

class VerifyAuditRequest(_message.Message):
    __slots__ = ("org_id",)
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    def __init__(self, org_id: _Optional[str] = ...) -> None: ...

class AuditCheck(_message.Message):
    __slots__ = ("rows", "whole", "first_bad")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    FIRST_BAD_FIELD_NUMBER: _ClassVar[int]
    rows: int
    whole: bool
    first_bad: int
    def __init__(self, rows: _Optional[int] = ..., whole: _Optional[bool] = ..., first_bad: _Optional[int] = ...) -> None: ...

class TaskOutputRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "task_no", "after", "limit")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NO_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    task_no: int
    after: int
    limit: int
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., task_no: _Optional[int] = ..., after: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class OutputPage(_message.Message):
    __slots__ = ("workflow_execution_id", "task_number", "chunks", "more")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NUMBER_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_number: int
    chunks: _containers.RepeatedCompositeFieldContainer[OutputChunk]
    more: bool
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_number: _Optional[int] = ..., chunks: _Optional[_Iterable[_Union[OutputChunk, _Mapping]]] = ..., more: _Optional[bool] = ...) -> None: ...

class StreamTaskRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id", "task_no", "after")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_NO_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    task_no: int
    after: int
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., task_no: _Optional[int] = ..., after: _Optional[int] = ...) -> None: ...

class TaskNews(_message.Message):
    __slots__ = ("kind", "attempt", "at", "sequence", "value", "dropped", "progress", "status", "failure")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    attempt: int
    at: int
    sequence: int
    value: bytes
    dropped: int
    progress: float
    status: str
    failure: Failure
    def __init__(self, kind: _Optional[str] = ..., attempt: _Optional[int] = ..., at: _Optional[int] = ..., sequence: _Optional[int] = ..., value: _Optional[bytes] = ..., dropped: _Optional[int] = ..., progress: _Optional[float] = ..., status: _Optional[str] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("type", "message", "traceback", "code", "non_retryable", "cause")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TRACEBACK_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    type: str
    message: str
    traceback: str
    code: str
    non_retryable: bool
    cause: Failure
    def __init__(self, type: _Optional[str] = ..., message: _Optional[str] = ..., traceback: _Optional[str] = ..., code: _Optional[str] = ..., non_retryable: _Optional[bool] = ..., cause: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class StandaloneTaskOutputRequest(_message.Message):
    __slots__ = ("org_id", "task_execution_id", "after", "limit")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    task_execution_id: str
    after: int
    limit: int
    def __init__(self, org_id: _Optional[str] = ..., task_execution_id: _Optional[str] = ..., after: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class StreamStandaloneTaskRequest(_message.Message):
    __slots__ = ("org_id", "task_execution_id", "after")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    task_execution_id: str
    after: int
    def __init__(self, org_id: _Optional[str] = ..., task_execution_id: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class TaskTimeouts(_message.Message):
    __slots__ = ("start_to_close_s", "schedule_to_close_s", "heartbeat_s")
    START_TO_CLOSE_S_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TO_CLOSE_S_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_S_FIELD_NUMBER: _ClassVar[int]
    start_to_close_s: float
    schedule_to_close_s: float
    heartbeat_s: float
    def __init__(self, start_to_close_s: _Optional[float] = ..., schedule_to_close_s: _Optional[float] = ..., heartbeat_s: _Optional[float] = ...) -> None: ...

class GetTaskResultRequest(_message.Message):
    __slots__ = ("org_id", "task_execution_id", "wait")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    task_execution_id: str
    wait: float
    def __init__(self, org_id: _Optional[str] = ..., task_execution_id: _Optional[str] = ..., wait: _Optional[float] = ...) -> None: ...

class TaskResult(_message.Message):
    __slots__ = ("workflow_execution_id", "task_kind", "status", "closed", "result", "failure", "attempts", "timeout", "reason")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    task_kind: str
    status: str
    closed: bool
    result: bytes
    failure: Failure
    attempts: int
    timeout: str
    reason: str
    def __init__(self, workflow_execution_id: _Optional[str] = ..., task_kind: _Optional[str] = ..., status: _Optional[str] = ..., closed: _Optional[bool] = ..., result: _Optional[bytes] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., attempts: _Optional[int] = ..., timeout: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelTaskRequest(_message.Message):
    __slots__ = ("org_id", "task_execution_id", "reason")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    task_execution_id: str
    reason: str
    def __init__(self, org_id: _Optional[str] = ..., task_execution_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class TaskOutputChunk(_message.Message):
    __slots__ = ("sequence", "attempt", "at", "value", "dropped")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    attempt: int
    at: int
    value: bytes
    dropped: int
    def __init__(self, sequence: _Optional[int] = ..., attempt: _Optional[int] = ..., at: _Optional[int] = ..., value: _Optional[bytes] = ..., dropped: _Optional[int] = ...) -> None: ...

class CompletePromiseRequest(_message.Message):
    __slots__ = ("org_id", "token", "token_hash", "result", "error", "request_id", "idempotency_key_ttl_seconds")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOKEN_HASH_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    token: str
    token_hash: str
    result: bytes
    error: bytes
    request_id: str
    idempotency_key_ttl_seconds: float
    def __init__(self, org_id: _Optional[str] = ..., token: _Optional[str] = ..., token_hash: _Optional[str] = ..., result: _Optional[bytes] = ..., error: _Optional[bytes] = ..., request_id: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[float] = ...) -> None: ...

class SettledPromise(_message.Message):
    __slots__ = ("promise_id", "state", "already_resolved", "value", "failure", "idempotency_key_used", "idempotency_key_new")
    PROMISE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ALREADY_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    promise_id: str
    state: str
    already_resolved: bool
    value: bytes
    failure: Failure
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, promise_id: _Optional[str] = ..., state: _Optional[str] = ..., already_resolved: _Optional[bool] = ..., value: _Optional[bytes] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class CompleteNamedPromiseRequest(_message.Message):
    __slots__ = ("org_id", "workflow_id", "promise_name", "result", "error", "allow_early", "request_id", "idempotency_key_ttl_seconds")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    PROMISE_NAME_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ALLOW_EARLY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_id: str
    promise_name: str
    result: bytes
    error: bytes
    allow_early: bool
    request_id: str
    idempotency_key_ttl_seconds: float
    def __init__(self, org_id: _Optional[str] = ..., workflow_id: _Optional[str] = ..., promise_name: _Optional[str] = ..., result: _Optional[bytes] = ..., error: _Optional[bytes] = ..., allow_early: _Optional[bool] = ..., request_id: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[float] = ...) -> None: ...

class SendMessageRequest(_message.Message):
    __slots__ = ("org_id", "name", "correlation_key", "data", "expire_after_seconds", "delivery", "request_id", "idempotency_key_ttl_seconds")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_KEY_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_AFTER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    name: str
    correlation_key: str
    data: bytes
    expire_after_seconds: float
    delivery: str
    request_id: str
    idempotency_key_ttl_seconds: float
    def __init__(self, org_id: _Optional[str] = ..., name: _Optional[str] = ..., correlation_key: _Optional[str] = ..., data: _Optional[bytes] = ..., expire_after_seconds: _Optional[float] = ..., delivery: _Optional[str] = ..., request_id: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[float] = ...) -> None: ...

class SendResult(_message.Message):
    __slots__ = ("event_id", "delivered", "retained", "started", "done", "idempotency_key_used", "idempotency_key_new")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    RETAINED_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    event_id: int
    delivered: int
    retained: bool
    started: _containers.RepeatedScalarFieldContainer[str]
    done: bool
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, event_id: _Optional[int] = ..., delivered: _Optional[int] = ..., retained: _Optional[bool] = ..., started: _Optional[_Iterable[str]] = ..., done: _Optional[bool] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class BroadcastRequest(_message.Message):
    __slots__ = ("org_id", "signal_name", "SignalName", "request_id", "idempotency_key_ttl_seconds")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNALNAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    signal_name: str
    SignalName: str
    request_id: str
    idempotency_key_ttl_seconds: float
    def __init__(self, org_id: _Optional[str] = ..., signal_name: _Optional[str] = ..., SignalName: _Optional[str] = ..., request_id: _Optional[str] = ..., idempotency_key_ttl_seconds: _Optional[float] = ...) -> None: ...

class BroadcastResult(_message.Message):
    __slots__ = ("broadcast_id", "delivered_count", "DeliveredCount", "idempotency_key_used", "idempotency_key_new")
    BROADCAST_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_COUNT_FIELD_NUMBER: _ClassVar[int]
    DELIVEREDCOUNT_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    broadcast_id: int
    delivered_count: int
    DeliveredCount: int
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, broadcast_id: _Optional[int] = ..., delivered_count: _Optional[int] = ..., DeliveredCount: _Optional[int] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class WorkflowPromisesRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ...) -> None: ...

class PromiseList(_message.Message):
    __slots__ = ("promises",)
    PROMISES_FIELD_NUMBER: _ClassVar[int]
    promises: _containers.RepeatedCompositeFieldContainer[PromiseInfo]
    def __init__(self, promises: _Optional[_Iterable[_Union[PromiseInfo, _Mapping]]] = ...) -> None: ...

class PromiseInfo(_message.Message):
    __slots__ = ("promise_id", "workflow_execution_id", "name", "number", "state", "created_at", "value", "failure", "event_key", "settled_at", "settled_by", "expires_at", "shape")
    PROMISE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    EVENT_KEY_FIELD_NUMBER: _ClassVar[int]
    SETTLED_AT_FIELD_NUMBER: _ClassVar[int]
    SETTLED_BY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    promise_id: str
    workflow_execution_id: str
    name: str
    number: int
    state: str
    created_at: int
    value: bytes
    failure: Failure
    event_key: str
    settled_at: int
    settled_by: SettlementInfo
    expires_at: int
    shape: bytes
    def __init__(self, promise_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ..., name: _Optional[str] = ..., number: _Optional[int] = ..., state: _Optional[str] = ..., created_at: _Optional[int] = ..., value: _Optional[bytes] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., event_key: _Optional[str] = ..., settled_at: _Optional[int] = ..., settled_by: _Optional[_Union[SettlementInfo, _Mapping]] = ..., expires_at: _Optional[int] = ..., shape: _Optional[bytes] = ...) -> None: ...

class SettlementInfo(_message.Message):
    __slots__ = ("by", "idempotency_key", "event_id")
    BY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    by: str
    idempotency_key: str
    event_id: int
    def __init__(self, by: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., event_id: _Optional[int] = ...) -> None: ...

class WorkflowWaitsRequest(_message.Message):
    __slots__ = ("org_id", "workflow_execution_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    workflow_execution_id: str
    def __init__(self, org_id: _Optional[str] = ..., workflow_execution_id: _Optional[str] = ...) -> None: ...

class WaitList(_message.Message):
    __slots__ = ("waits",)
    WAITS_FIELD_NUMBER: _ClassVar[int]
    waits: _containers.RepeatedCompositeFieldContainer[WaitInfo]
    def __init__(self, waits: _Optional[_Iterable[_Union[WaitInfo, _Mapping]]] = ...) -> None: ...

class WaitInfo(_message.Message):
    __slots__ = ("subscription_id", "workflow_execution_id", "wait_number", "kind", "key", "since", "where", "correlation_key", "consume_on_read", "promise")
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_KEY_FIELD_NUMBER: _ClassVar[int]
    CONSUME_ON_READ_FIELD_NUMBER: _ClassVar[int]
    PROMISE_FIELD_NUMBER: _ClassVar[int]
    subscription_id: int
    workflow_execution_id: str
    wait_number: int
    kind: str
    key: str
    since: int
    where: str
    correlation_key: str
    consume_on_read: bool
    promise: str
    def __init__(self, subscription_id: _Optional[int] = ..., workflow_execution_id: _Optional[str] = ..., wait_number: _Optional[int] = ..., kind: _Optional[str] = ..., key: _Optional[str] = ..., since: _Optional[int] = ..., where: _Optional[str] = ..., correlation_key: _Optional[str] = ..., consume_on_read: _Optional[bool] = ..., promise: _Optional[str] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("org_id", "key", "before", "limit")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    key: str
    before: int
    limit: int
    def __init__(self, org_id: _Optional[str] = ..., key: _Optional[str] = ..., before: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class EventList(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[EventInfo]
    def __init__(self, events: _Optional[_Iterable[_Union[EventInfo, _Mapping]]] = ...) -> None: ...

class EventInfo(_message.Message):
    __slots__ = ("event_id", "key", "status", "published_at", "data", "expires_at", "delivered", "correlation_key", "created_before", "consume_on_read", "reason", "dead_at")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_AT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_KEY_FIELD_NUMBER: _ClassVar[int]
    CREATED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    CONSUME_ON_READ_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DEAD_AT_FIELD_NUMBER: _ClassVar[int]
    event_id: int
    key: str
    status: str
    published_at: int
    data: bytes
    expires_at: int
    delivered: int
    correlation_key: str
    created_before: bool
    consume_on_read: bool
    reason: str
    dead_at: int
    def __init__(self, event_id: _Optional[int] = ..., key: _Optional[str] = ..., status: _Optional[str] = ..., published_at: _Optional[int] = ..., data: _Optional[bytes] = ..., expires_at: _Optional[int] = ..., delivered: _Optional[int] = ..., correlation_key: _Optional[str] = ..., created_before: _Optional[bool] = ..., consume_on_read: _Optional[bool] = ..., reason: _Optional[str] = ..., dead_at: _Optional[int] = ...) -> None: ...

class ListDeadEventsRequest(_message.Message):
    __slots__ = ("org_id", "key", "before", "limit")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    key: str
    before: int
    limit: int
    def __init__(self, org_id: _Optional[str] = ..., key: _Optional[str] = ..., before: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class GetEventRequest(_message.Message):
    __slots__ = ("org_id", "event_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    event_id: int
    def __init__(self, org_id: _Optional[str] = ..., event_id: _Optional[int] = ...) -> None: ...

class RemoveEventRequest(_message.Message):
    __slots__ = ("org_id", "event_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    event_id: int
    def __init__(self, org_id: _Optional[str] = ..., event_id: _Optional[int] = ...) -> None: ...

class RemoveEventResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReplayEventRequest(_message.Message):
    __slots__ = ("org_id", "event_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    event_id: int
    def __init__(self, org_id: _Optional[str] = ..., event_id: _Optional[int] = ...) -> None: ...

class PublishResult(_message.Message):
    __slots__ = ("event_id", "delivered", "retained", "started", "done", "idempotency_key_used", "idempotency_key_new")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    RETAINED_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_USED_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_NEW_FIELD_NUMBER: _ClassVar[int]
    event_id: int
    delivered: int
    retained: bool
    started: _containers.RepeatedScalarFieldContainer[str]
    done: bool
    idempotency_key_used: bool
    idempotency_key_new: bool
    def __init__(self, event_id: _Optional[int] = ..., delivered: _Optional[int] = ..., retained: _Optional[bool] = ..., started: _Optional[_Iterable[str]] = ..., done: _Optional[bool] = ..., idempotency_key_used: _Optional[bool] = ..., idempotency_key_new: _Optional[bool] = ...) -> None: ...

class EventKeyRequest(_message.Message):
    __slots__ = ("org_id", "key")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    key: str
    def __init__(self, org_id: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class EventKeyInfo(_message.Message):
    __slots__ = ("key", "retained", "dropped")
    KEY_FIELD_NUMBER: _ClassVar[int]
    RETAINED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    key: str
    retained: int
    dropped: int
    def __init__(self, key: _Optional[str] = ..., retained: _Optional[int] = ..., dropped: _Optional[int] = ...) -> None: ...

class WaitsOfKeyRequest(_message.Message):
    __slots__ = ("org_id", "key", "kind", "limit")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    key: str
    kind: str
    limit: int
    def __init__(self, org_id: _Optional[str] = ..., key: _Optional[str] = ..., kind: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ExplainEventRequest(_message.Message):
    __slots__ = ("org_id", "event_id")
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    event_id: int
    def __init__(self, org_id: _Optional[str] = ..., event_id: _Optional[int] = ...) -> None: ...

class EventExplanation(_message.Message):
    __slots__ = ("event", "waits", "more")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    event: EventInfo
    waits: _containers.RepeatedCompositeFieldContainer[ConsideredWait]
    more: bool
    def __init__(self, event: _Optional[_Union[EventInfo, _Mapping]] = ..., waits: _Optional[_Iterable[_Union[ConsideredWait, _Mapping]]] = ..., more: _Optional[bool] = ...) -> None: ...

class ConsideredWait(_message.Message):
    __slots__ = ("wait", "satisfied", "reason", "parts")
    WAIT_FIELD_NUMBER: _ClassVar[int]
    SATISFIED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    wait: WaitInfo
    satisfied: bool
    reason: str
    parts: _containers.RepeatedCompositeFieldContainer[FilterPart]
    def __init__(self, wait: _Optional[_Union[WaitInfo, _Mapping]] = ..., satisfied: _Optional[bool] = ..., reason: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[FilterPart, _Mapping]]] = ...) -> None: ...

class FilterPart(_message.Message):
    __slots__ = ("source", "outcome", "error", "facts")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    source: str
    outcome: str
    error: str
    facts: _containers.RepeatedCompositeFieldContainer[Fact]
    def __init__(self, source: _Optional[str] = ..., outcome: _Optional[str] = ..., error: _Optional[str] = ..., facts: _Optional[_Iterable[_Union[Fact, _Mapping]]] = ...) -> None: ...

class Fact(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class WhoAmIRequest(_message.Message):
    __slots__ = ("org_id",)
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    def __init__(self, org_id: _Optional[str] = ...) -> None: ...

class CallerInfo(_message.Message):
    __slots__ = ("org", "role", "key_id", "payload_bytes", "now")
    ORG_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    org: str
    role: str
    key_id: str
    payload_bytes: int
    now: int
    def __init__(self, org: _Optional[str] = ..., role: _Optional[str] = ..., key_id: _Optional[str] = ..., payload_bytes: _Optional[int] = ..., now: _Optional[int] = ...) -> None: ...

class RecoverRequest(_message.Message):
    __slots__ = ("org_id",)
    ORG_ID_FIELD_NUMBER: _ClassVar[int]
    org_id: str
    def __init__(self, org_id: _Optional[str] = ...) -> None: ...

class RecoveryReport(_message.Message):
    __slots__ = ("open_executions", "sessions_expired", "turns_reclaimed", "tasks_reclaimed", "timers_fired", "made_ready", "timers_restored", "tasks_restored", "waits_restored", "promises_restored", "stuck")
    OPEN_EXECUTIONS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_EXPIRED_FIELD_NUMBER: _ClassVar[int]
    TURNS_RECLAIMED_FIELD_NUMBER: _ClassVar[int]
    TASKS_RECLAIMED_FIELD_NUMBER: _ClassVar[int]
    TIMERS_FIRED_FIELD_NUMBER: _ClassVar[int]
    MADE_READY_FIELD_NUMBER: _ClassVar[int]
    TIMERS_RESTORED_FIELD_NUMBER: _ClassVar[int]
    TASKS_RESTORED_FIELD_NUMBER: _ClassVar[int]
    WAITS_RESTORED_FIELD_NUMBER: _ClassVar[int]
    PROMISES_RESTORED_FIELD_NUMBER: _ClassVar[int]
    STUCK_FIELD_NUMBER: _ClassVar[int]
    open_executions: int
    sessions_expired: int
    turns_reclaimed: int
    tasks_reclaimed: int
    timers_fired: int
    made_ready: int
    timers_restored: int
    tasks_restored: int
    waits_restored: int
    promises_restored: int
    stuck: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, open_executions: _Optional[int] = ..., sessions_expired: _Optional[int] = ..., turns_reclaimed: _Optional[int] = ..., tasks_reclaimed: _Optional[int] = ..., timers_fired: _Optional[int] = ..., made_ready: _Optional[int] = ..., timers_restored: _Optional[int] = ..., tasks_restored: _Optional[int] = ..., waits_restored: _Optional[int] = ..., promises_restored: _Optional[int] = ..., stuck: _Optional[_Iterable[str]] = ...) -> None: ...

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
    __slots__ = ("workflow_execution_id", "token", "base_sequence", "turns", "steps", "after_steps", "waiting_for", "unread", "refused", "snapshot")
    WORKFLOW_EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    BASE_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    AFTER_STEPS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    workflow_execution_id: str
    token: Token
    base_sequence: int
    turns: bytes
    steps: _containers.RepeatedCompositeFieldContainer[HistoryEvent]
    after_steps: bytes
    waiting_for: bytes
    unread: _containers.RepeatedScalarFieldContainer[int]
    refused: _containers.RepeatedCompositeFieldContainer[RefusedSignal]
    snapshot: Snapshot
    def __init__(self, workflow_execution_id: _Optional[str] = ..., token: _Optional[_Union[Token, _Mapping]] = ..., base_sequence: _Optional[int] = ..., turns: _Optional[bytes] = ..., steps: _Optional[_Iterable[_Union[HistoryEvent, _Mapping]]] = ..., after_steps: _Optional[bytes] = ..., waiting_for: _Optional[bytes] = ..., unread: _Optional[_Iterable[int]] = ..., refused: _Optional[_Iterable[_Union[RefusedSignal, _Mapping]]] = ..., snapshot: _Optional[_Union[Snapshot, _Mapping]] = ...) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ("up_to", "version", "build", "state")
    UP_TO_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    up_to: int
    version: str
    build: str
    state: bytes
    def __init__(self, up_to: _Optional[int] = ..., version: _Optional[str] = ..., build: _Optional[str] = ..., state: _Optional[bytes] = ...) -> None: ...

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
