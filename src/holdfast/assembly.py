"""The only place that knows concrete classes: puts store, engine, services, worker and client together as `Engine`."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from holdfast.client.client import Client
from holdfast.client.events import Published
from holdfast.client.following import successor_of
from holdfast.client.options import Workflow
from holdfast.client.views import result_of
from holdfast.config import EngineConfig
from holdfast.contract.upkeep import RecoveryReport
from holdfast.engine.facade import LocalEngine
from holdfast.errors import EngineStopped, ExecutionNotFound, InvalidDatabaseUrl
from holdfast.frontends.python.definitions import Registry
from holdfast.model.executions import Status
from holdfast.secret_key import secret_key
from holdfast.services.clockwork import Clockwork
from holdfast.services.housekeeping import Housekeeping
from holdfast.services.lookout import Lookout
from holdfast.services.loops import Service
from holdfast.store.protocol import Clock, Store
from holdfast.store.sqlite.store import SqliteStore
from holdfast.worker.worker import Worker


class SystemClock:
    """Wall time in microseconds that never goes back within a process."""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self) -> int:
        now = time.time_ns() // 1000
        self._last = max(self._last, now)
        return self._last


def open_store(url: str, config: EngineConfig, clock: Clock) -> Store:
    """The store a database URL names: `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://` (memory)."""
    if not isinstance(url, str):
        raise InvalidDatabaseUrl(f"a database URL is text, not {type(url).__name__}", field="url")
    parts = urlsplit(url)
    if parts.scheme in {"postgresql", "postgres"}:
        raise InvalidDatabaseUrl(
            "this version of Holdfast has no PostgreSQL store yet: use sqlite:///path/to/file.db", field="url"
        )
    if not url.startswith("sqlite://") or parts.netloc or parts.query or parts.fragment:
        raise InvalidDatabaseUrl(
            f"{url!r} is not a database URL Holdfast knows: use sqlite:///path/to/file.db (four slashes for an "
            "absolute path) or sqlite:// for memory",
            field="url",
        )
    return SqliteStore(database_file(url), config.store, clock)


def database_file(url: str) -> Path | None:
    """The file that a URL of SQLite names; None for a database in memory."""
    path = unquote(urlsplit(url).path)[1:]
    return Path(path) if path else None


def _spare_collector(threshold: int | None) -> tuple[int, int, int]:
    """Let the collector look less often; what it was before. Somebody else's higher setting stays."""
    before = gc.get_threshold()
    if threshold is not None and gc.isenabled() and 0 < before[0] < threshold:
        gc.set_threshold(threshold, *before[1:])
    return before


class Engine:
    """Engine, services and, when there are workflows or tasks, a worker: all in this process.

    Use it as `async with Engine("sqlite:///app.db", workflows=[...], tasks=[...]) as engine`. `client` is the way in;
    the other methods are the short forms for scripts.
    """

    def __init__(
        self,
        url: str = "sqlite:///holdfast.db",
        *,
        workflows: Iterable[Callable[..., Any]] = (),
        tasks: Iterable[Callable[..., Any]] = (),
        config: EngineConfig | None = None,
        org: str = "default",
        clock: Clock | None = None,
    ) -> None:
        self.config = config or EngineConfig()
        self.org = org
        self._clock = clock or SystemClock()
        self._registry = Registry(workflows, tasks)
        self._url = url
        self._local = self._make_local(url)
        self.client = Client(self._local.executions, self._local.messages, org, self.config.limits.payload_bytes)
        self._worker: Worker | None = None
        self._running = False

    # --- life ---

    async def __aenter__(self) -> Self:
        await self.start_up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    async def start_up(self) -> None:
        """Open the database and begin to work. There is nothing to recover: what was waiting is claimed like new
        work."""
        if self._running:
            return
        await self._local.start()
        self._running = True
        self._gc_thresholds = _spare_collector(self.config.gc_threshold)
        upkeep = self._local.upkeep
        config = self.config
        self._services = (
            Clockwork(upkeep, config.worker.lease_s / 3, config.timer_resolution_s),
            Lookout(upkeep, config.hint_poll_s, config.poll_s),
            Housekeeping(upkeep),
        )
        self._begin(self._services)
        self.client.portal.open()
        if self._registry.workflows or self._registry.tasks:
            self._worker = self._make_worker(self._registry)
            await self._worker.start()

    async def shutdown(self) -> None:
        """Stop claiming, let turns and tasks finish within the grace, give leases back, write everything, close."""
        if not self._running:
            return
        self._running = False
        if self._worker is not None:
            await self._worker.stop()
            self._worker = None
        for service in self._services:
            await service.stop()
        await self._local.stop()
        self.client.portal.close()
        gc.set_threshold(*self._gc_thresholds)

    # --- what the testing kit puts virtual time into ---

    def _make_local(self, url: str) -> LocalEngine:
        return LocalEngine(open_store(url, self.config, self._clock), self.config, secret=self._secret)

    def _make_worker(self, registry: Registry) -> Worker:
        return Worker(self._local.workers, self.org, registry, self.config.worker, self._clock, secret=self._secret())

    def _secret(self) -> bytes:
        return secret_key(self.config.secret_key, database_file(self._url))

    def _begin(self, services: Iterable[Service]) -> None:
        for service in services:
            service.start()

    @property
    def storage(self) -> Store:
        return self._local.store

    @property
    def worker(self) -> Worker | None:
        """The worker in this process, if workflows or tasks were given."""
        return self._worker

    # --- short forms ---

    async def start(self, workflow: Workflow, input: Any = None, workflow_id: str | None = None) -> str:
        """Start a workflow; its execution id."""
        return (await self.client.start_workflow(workflow, input, workflow_id=workflow_id)).id

    async def send_event(self, key: str, data: Any = None) -> Published:
        """Publish an event to whoever waits for its key, and to those who will look back."""
        return await self.client.publish_event(key, data)

    async def query_status(self, workflow_execution_id: str) -> Status | None:
        """The status, or None if there is no such execution."""
        try:
            return await self.client.workflow(workflow_execution_id).status()
        except ExecutionNotFound:
            return None

    async def query_result(self, workflow_execution_id: str, type_hint: Any = Any) -> Any:
        """The result of a completed execution; None while it is open or if there is none. Raises if it failed."""
        status = await self.query_status(workflow_execution_id)
        if status is None or status.is_open:
            return None
        outcome = await self._local.executions.outcome(self.org, workflow_execution_id)
        successor = successor_of(outcome.last_event.body)
        if successor is not None:
            return await self.query_result(successor, type_hint)
        return result_of(outcome, type_hint)

    async def cancel(self, workflow_execution_id: str) -> bool:
        """Ask an execution to stop. False if it is closed, unknown, or was asked before."""
        try:
            return await self.client.cancel_workflow(workflow_execution_id)
        except ExecutionNotFound:
            return False

    async def recover(self) -> RecoveryReport:
        """Do at once what the services do in time, check every waiting execution, report."""
        if not self._running:
            raise EngineStopped
        return await self._local.upkeep.recover(self.org)
