"""Settings as frozen records. Every default is stated here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

GC_THRESHOLD: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one call, one execution, one turn may use."""

    signals_per_execution: int = 10_000
    payload_warning_bytes: int = 2 * 1024 * 1024
    payload_bytes: int = 64 * 1024 * 1024
    page_size: int = 1_000
    child_depth: int = 100
    events_per_key: int = 10_000
    output_chunk_bytes: int = 64 * 1024
    output_chunks_per_task: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """How the database is used. `synchronous="normal"` may lose the last second on power loss, never on a crash.

    `migrate=False`: the schema is brought up to date by `holdfast migrate` alone. What follows it is about PostgreSQL.
    `notify=False` is for transaction poolers, which keep nothing of a session: no LISTEN, no prepared statements.
    `require_sync=True` refuses a server that may lose answered calls in a crash or a failover, instead of warning.
    """

    synchronous: str = "full"
    busy_deadline_s: float = 30.0
    checkpoint_wal_bytes: int = 16 * 1024 * 1024
    readers: int = 2
    batch_size: int = 2_000
    migrate: bool = True
    notify: bool = True
    connect_timeout_s: float = 10.0
    statement_timeout_s: float = 30.0
    require_sync: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """How much one worker takes on, and how long its word counts.

    `propagate_child_failures`: whether awaiting a child that failed raises; `ctx.child` can say otherwise for each.
    `replay_always`: for tests. Every program is thrown away after each commit and rebuilt from its history.
    """

    turn_slots: int = 1_000
    task_slots: int = 100
    task_threads: int = 32
    cached_executions: int = 10_000
    lease_s: float = 30.0
    queues: tuple[str, ...] = ("default",)
    shutdown_grace_s: float = 10.0
    turn_warning_s: float = 2.0
    turn_limit_s: float = 60.0
    history_warning_events: int = 10_000
    propagate_child_failures: bool = True
    replay_always: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where a server listens, and what it takes from one caller. Sizes are bytes, `port` 0 is any free one, `grpc_port`
    None is none. Certificate and key are files.

    `body_bytes` is for calls without a payload, `payload_body_bytes` for the others. `requests_per_second` counts per
    key, or per address where there are no keys; None for any number. A stream or long poll costs little, but not
    nothing: `streams` is how many there may be at once. `trusted_proxies` are addresses and networks of proxies whose
    X-Forwarded-For is believed.
    """

    host: str = "127.0.0.1"
    port: int = 8233
    grpc_port: int | None = 7234
    tls_certificate: str | None = None
    tls_key: str | None = field(default=None, repr=False)
    body_bytes: int = 1024 * 1024
    payload_body_bytes: int = 65 * 1024 * 1024
    header_bytes: int = 16 * 1024
    document_depth: int = 100
    document_nodes: int = 1_000_000
    grpc_message_bytes: int = 4 * 1024 * 1024
    requests_per_second: float | None = None
    trusted_proxies: tuple[str, ...] = ()
    streams: int = 10_000
    header_timeout_s: float = 10.0
    keep_alive_s: float = 75.0
    heartbeat_s: float = 15.0
    shutdown_grace_s: float = 10.0
    access_log: bool = True
    documentation: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryConfig:
    """What an operator can see. `metrics` None: where there is a server to ask for them.

    `traces` needs `pip install 'holdfast[otel]'` and an OpenTelemetry SDK that the application sets up. `trace_ratio`
    of all executions are traced, the same ones on every node. `series` bounds the label sets of each metric.
    """

    metrics: bool | None = None
    traces: bool = False
    trace_ratio: float = 1.0
    series: int = 200
    queue_refresh_s: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Everything an Engine can be told. The worker's part is ignored by an engine without workflows and tasks.

    `gc_threshold`: while an engine runs, Python's collector looks for cycles after so many new objects instead of 700:
    an engine makes many short-lived ones. It counts for the whole process; None leaves the collector alone.
    `closed_retention_s`: how long an execution is kept after it has closed, with its history and dead letters; None:
    for ever. It is looked every ten minutes.
    `secret_key`: what the tokens of promises are made from; by default the environment variable HOLDFAST_SECRET_KEY,
    else a file next to the database. See holdfast.secret_key.
    """

    limits: Limits = field(default_factory=Limits)
    store: StoreConfig = field(default_factory=StoreConfig)
    worker: WorkerConfig = field(default_factory=WorkerConfig)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    timer_resolution_s: float = 0.005
    poll_max_s: float = 0.25
    poll_min_s: float = 0.02
    crash_attempts: int = 5
    stuck_retry_s: float = 300.0
    secret_key: str | None = field(default=None, repr=False)
    request_ttl_s: float = 24 * 3600.0
    event_retention_s: float = 7 * 24 * 3600.0
    closed_retention_s: float | None = None
    gc_threshold: int | None = GC_THRESHOLD

    @property
    def suspect_from(self) -> int:
        """After so many losses in a row the next one would park an execution: from then on it runs alone."""
        return max(self.crash_attempts - 1, 1)
