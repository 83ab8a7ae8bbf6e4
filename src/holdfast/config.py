"""Settings as frozen records. Every default is stated here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one call, one execution, one turn may use."""

    signals_per_execution: int = 10_000
    payload_warning_bytes: int = 2 * 1024 * 1024
    payload_bytes: int = 64 * 1024 * 1024
    page_size: int = 1_000
    child_depth: int = 100
    events_per_key: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """How the database is used. `synchronous="normal"` may lose the last second on power loss, never on a crash."""

    synchronous: str = "full"
    busy_deadline_s: float = 30.0
    checkpoint_wal_bytes: int = 16 * 1024 * 1024
    readers: int = 2
    batch_size: int = 2_000


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
class EngineConfig:
    """Everything an Engine can be told. The worker's part is ignored by an engine without workflows and tasks.

    `gc_threshold`: while an engine runs, Python's collector looks for cycles after so many new objects instead of 700:
    an engine makes many short-lived ones. It counts for the whole process; None leaves the collector alone.
    `secret_key`: what the tokens of promises are made from; by default the environment variable HOLDFAST_SECRET_KEY,
    else a file next to the database. See holdfast.secret_key.
    """

    limits: Limits = field(default_factory=Limits)
    store: StoreConfig = field(default_factory=StoreConfig)
    worker: WorkerConfig = field(default_factory=WorkerConfig)
    timer_resolution_s: float = 0.005
    poll_s: float = 0.25
    hint_poll_s: float = 0.02
    crash_attempts: int = 5
    stuck_retry_s: float = 300.0
    secret_key: str | None = field(default=None, repr=False)
    request_ttl_s: float = 24 * 3600.0
    event_retention_s: float = 7 * 24 * 3600.0
    gc_threshold: int | None = 10_000
