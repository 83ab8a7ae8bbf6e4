"""The only place that knows concrete classes: puts store, engine, services, worker and client together as `Engine`."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

from holdfast.client.client import Client
from holdfast.client.keys import OperatorKeys
from holdfast.client.options import Workflow
from holdfast.client.views import result_of
from holdfast.config import GC_THRESHOLD, EngineConfig, ServerConfig, TelemetryConfig, WorkerConfig
from holdfast.contract.execution_reads import GetResult
from holdfast.contract.messages import PublishResult
from holdfast.contract.system import Recover
from holdfast.contract.upkeep import RecoveryReport
from holdfast.engine.facade import LocalEngine
from holdfast.engine.observing import CommitMeters, CommitTraces, Observer, observe
from holdfast.engine.scraping import MetricsPage
from holdfast.errors import EngineStopped, ExecutionNotFound, InvalidDatabaseUrl, InvalidServer
from holdfast.model.executions import Status
from holdfast.model.tokens import execution_key
from holdfast.replay.definition import AnyWorkflow
from holdfast.replay.registry import Registry
from holdfast.secret_key import secret_key
from holdfast.services.clockwork import Clockwork
from holdfast.services.deletions import Deletions
from holdfast.services.housekeeping import Housekeeping
from holdfast.services.lookout import Lookout
from holdfast.services.loops import Service
from holdfast.store.protocol import Clock, Store
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.urls import FORMS, kind_of
from holdfast.telemetry.traces import Tracing
from holdfast.worker.host import Host
from holdfast.worker.worker import Worker

if TYPE_CHECKING:
    from holdfast.api.auth import Authenticator, AuthSettings
    from holdfast.api.grpc.server import GrpcServer
    from holdfast.api.nouns import Nouns
    from holdfast.api.server import ApiServer


class SystemClock:
    """Wall time in microseconds that never goes back within a process."""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self) -> int:
        now = time.time_ns() // 1000
        self._last = max(self._last, now)
        return self._last


def open_store(url: str, config: EngineConfig, clock: Clock | None = None) -> Store:
    """The store a database URL names: `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://` (memory),
    `postgresql://user:password@host/database`. Without a clock, time is the database's own, or the system's."""
    if kind_of(url) == "postgresql":
        return _postgres_store(url, config, clock)
    rest = url.removeprefix("sqlite://")
    if rest[:1] not in {"", "/"} or "?" in rest or "#" in rest:
        raise InvalidDatabaseUrl(f"a URL of SQLite names a file, neither a host nor options: {FORMS}", field="url")
    return SqliteStore(database_file(url), config.store, clock or SystemClock())


def _postgres_store(url: str, config: EngineConfig, clock: Clock | None) -> Store:
    from holdfast.store.postgres.store import PostgresStore  # noqa: PLC0415 - the driver is an extra

    return PostgresStore(url, config.store, clock)


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
        workflows: Iterable[AnyWorkflow] = (),
        tasks: Iterable[Callable[..., Any]] = (),
        config: EngineConfig | None = None,
        org: str = "default",
        clock: Clock | None = None,
    ) -> None:
        self.config = config or EngineConfig()
        self.org = org
        self._clock = clock
        self._registry = Registry(workflows, tasks)
        self._url = url
        self._local = self._make_local(url)
        self.metrics = self._observe()
        """The metrics of this process, if they are on: `await engine.metrics.page()`."""
        self.client = Client(self._local.api, org, payload_limit=self.config.limits.payload_bytes)
        self._worker: Worker | None = None
        self._token_secret: bytes | None = None
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
            Deletions(upkeep),
        )
        self._begin(self._services)
        self.client.portal.open()
        if self._registry.workflows or self._registry.tasks:
            try:
                worker = self._make_worker(self._registry)
                if self._local.tracing is not None:
                    worker.trace(self._local.tracing)
                await worker.start()
            except BaseException:
                await self.shutdown()  # an engine that has not started holds nothing open
                raise
            self._worker = worker

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

    def _observe(self) -> MetricsPage | None:
        telemetry = self.config.telemetry
        page, observers = None, list[Observer]()
        if telemetry.metrics:
            page = MetricsPage(self._local.store, telemetry.queue_refresh_s, telemetry.series)
            page.watch_engine(self._local)
            page.watch_worker(lambda: self._worker)
            self._local.metrics = page
            observers.append(CommitMeters(page.meters))
        if telemetry.traces:
            tracing = Tracing(telemetry.trace_ratio)
            self._local.tracing = tracing
            observers.append(CommitTraces(tracing))
        if observers:
            observe(self._local.queue, *observers)
        return page

    # --- what the testing kit puts virtual time into ---

    def _make_local(self, url: str) -> LocalEngine:
        return LocalEngine(open_store(url, self.config, self._clock), self.config, secret=self._secret)

    def _make_worker(self, registry: Registry) -> Worker:
        clock = self._local.store.clock
        return Worker(self._local.workers, self.org, registry, self.config.worker, clock, secret=self._secret())

    def _secret(self) -> bytes:
        shared: bytes | None = getattr(self._local.store, "shared_secret", None)
        return secret_key(self.config.secret_key, shared if shared is not None else database_file(self._url))

    def _begin(self, services: Iterable[Service]) -> None:
        for service in services:
            service.start()

    def token_key(self, org: str, execution_id: str) -> bytes:
        """What the tokens of an execution are made from."""
        if self._token_secret is None:
            self._token_secret = self._secret()  # it may come from a file, and this is asked for every piece of work
        return execution_key(self._token_secret, org, execution_id)

    def nouns(self) -> Nouns:
        """What a door sees of this engine."""
        from holdfast.api.nouns import Nouns  # noqa: PLC0415 - an engine without doors does without

        local = self._local
        return Nouns(
            api=local.api,
            workers=local.workers,
            upkeep=local.upkeep,
            feeds=local.feeds,
            keys=local.keys,
            payload_bytes=self.config.limits.payload_bytes,
        )

    @property
    def storage(self) -> Store:
        return self._local.store

    @property
    def keys(self) -> OperatorKeys:
        """API keys of all orgs, for whoever has the database itself."""
        return OperatorKeys(self._local.api, self._local.keys)

    @property
    def worker(self) -> Worker | None:
        """The worker in this process, if workflows or tasks were given."""
        return self._worker

    # --- short forms ---

    async def start(self, workflow: Workflow, input: Any = None, workflow_id: str | None = None) -> str:
        """Start a workflow; its execution id."""
        return (await self.client.start_workflow(workflow, input, workflow_id=workflow_id)).id

    async def send_event(self, key: str, data: Any = None) -> PublishResult:
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
        ended = await self._local.api.call(GetResult(org=self.org, workflow_execution_id=workflow_execution_id))
        if ended.successor is not None:
            return await self.query_result(ended.successor, type_hint)
        return result_of(ended, type_hint)

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
        return await self._local.api.call(Recover(org=self.org))


class RemoteWorker:
    """A worker in this process for a server elsewhere: runs workflows and tasks, and needs no database.

    Use it as `async with RemoteWorker("grpc://host:7234", workflows=[...], tasks=[...], api_key=...)`. Several servers
    are named with commas: `grpc://one:7234,two:7234`; `grpcs://` is TLS. It opens a session, takes work until it is
    left, and hands back what it has not finished. The key decides the org; without keys it is `org`, or `default`.
    `gc_threshold` as in EngineConfig.
    """

    def __init__(
        self,
        server: str = "grpc://127.0.0.1:7234",
        *,
        workflows: Iterable[AnyWorkflow] = (),
        tasks: Iterable[Callable[..., Any]] = (),
        api_key: str | None = None,
        authority: bytes | None = None,
        config: WorkerConfig | None = None,
        org: str = "",
        connect_timeout_s: float | None = 60.0,
        telemetry: TelemetryConfig | None = None,
        gc_threshold: int | None = GC_THRESHOLD,
    ) -> None:
        try:
            from holdfast.client.remote.workers import RemoteWorkers  # noqa: PLC0415 - what it needs is an extra
        except ModuleNotFoundError as error:
            raise InvalidServer(f"{error.name} is not installed: pip install 'holdfast[grpc]'") from error
        self.config = config or WorkerConfig()
        self._gc_threshold = gc_threshold
        self._workers = RemoteWorkers(server, api_key=api_key, authority=authority, connect_timeout_s=connect_timeout_s)
        self.worker = Worker(
            self._workers,
            org,
            Registry(workflows, tasks),
            self.config,
            self._workers.now,
            secret=b"",
            make_host=_RemoteHost,
        )
        if telemetry is not None and telemetry.traces:
            self.worker.trace(Tracing(telemetry.trace_ratio))
        self._running = False

    @property
    def session(self) -> str:
        """The name of its session, as the server has given it: in histories it says who did what."""
        return self._workers.session

    @property
    def connected(self) -> bool:
        """Whether there is a stream to a server now."""
        return self._workers.connected

    async def __aenter__(self) -> Self:
        await self.start_up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    async def pause(self) -> None:
        """Take no new work for the time being; what is under way comes to its end here."""
        await self._workers.pause(True)

    async def resume(self) -> None:
        """Take work again."""
        await self._workers.pause(False)

    async def start_up(self) -> None:
        """Open a session: waits for a server that is not there yet."""
        if self._running:
            return
        try:
            await self.worker.start()
        except BaseException:
            self._workers.stop()
            raise
        self._gc_thresholds = _spare_collector(self._gc_threshold)
        self._running = True

    async def shutdown(self) -> None:
        """Take nothing more, let turns and tasks finish within the grace, hand back the rest, say goodbye."""
        if self._running:
            self._running = False
            await self.worker.stop()
            gc.set_threshold(*self._gc_thresholds)


class _RemoteHost(Host):
    """The secret stays with the server: keys for the tokens of executions come with the work. So does the org."""

    @property
    def org(self) -> str:
        return self.workers.org or self._asked_for  # type: ignore[attr-defined]  # see RemoteWorker

    @org.setter
    def org(self, org: str) -> None:
        self._asked_for = org

    def token_key(self, execution_id: str) -> bytes:
        return self.workers.token_key(execution_id)  # type: ignore[attr-defined, no-any-return]  # see RemoteWorker


class Server:
    """An Engine that others can reach: over HTTP, with API keys.

    Use it as `async with Server("sqlite:///app.db", workflows=[...]) as server`. It is made of an Engine with the same
    arguments, which is `engine`; `server` says where it listens and what it takes, `auth` who is let in. Needs
    `pip install 'holdfast[server]'`.
    """

    def __init__(
        self,
        url: str = "sqlite:///holdfast.db",
        *,
        workflows: Iterable[AnyWorkflow] = (),
        tasks: Iterable[Callable[..., Any]] = (),
        config: EngineConfig | None = None,
        server: ServerConfig | None = None,
        auth: AuthSettings | None = None,
        org: str = "default",
        clock: Clock | None = None,
    ) -> None:
        config = _with_metrics(config or EngineConfig())
        self.engine = Engine(url, workflows=workflows, tasks=tasks, config=config, org=org, clock=clock)
        self.config = server or ServerConfig()
        self._auth = auth
        self._api: ApiServer | None = None
        self.grpc: GrpcServer | None = None
        """The gRPC door, once it is started, unless `grpc_port` is None."""

    @property
    def client(self) -> Client:
        """A client in this process, which needs no key."""
        return self.engine.client

    @property
    def url(self) -> str:
        """Where it listens."""
        if self._api is None:
            raise InvalidServer("the server is not started: use it inside `async with Server(...)`", field="url")
        return self._api.url

    async def __aenter__(self) -> Self:
        await self.start_up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    async def start_up(self) -> None:
        """Start the engine, then open the doors. If a door does not open, the engine is stopped again."""
        if self._api is not None:
            return
        api_server = _api_server()
        await self.engine.start_up()
        try:
            others = () if self.config.grpc_port is None else (self._grpc_door,)
            api: ApiServer = api_server(self.engine.nouns(), self.config, self._auth, others)
            await api.start()
        except BaseException:
            await self.engine.shutdown()
            raise
        self._api = api

    def _grpc_door(self, guard: Authenticator) -> GrpcServer:
        from holdfast.api.grpc.server import GrpcServer  # noqa: PLC0415 - what it needs is an extra
        from holdfast.api.grpc.settings import GrpcSettings  # noqa: PLC0415

        config = self.config
        settings = GrpcSettings(
            host=config.host,
            port=config.grpc_port or 0,
            tls_certificate=_pem(config.tls_certificate),
            tls_key=_pem(config.tls_key),
            max_message_bytes=config.grpc_message_bytes,
            max_metadata_bytes=config.header_bytes,
            common=config,
        )
        self.grpc = GrpcServer(self.engine.nouns(), guard, settings, token_key=self.engine.token_key)
        return self.grpc

    async def shutdown(self) -> None:
        """Accept nothing new, end streams, finish what is under way, then stop the engine."""
        api, self._api = self._api, None
        if api is not None:
            await api.stop()
        await self.engine.shutdown()


def _with_metrics(config: EngineConfig) -> EngineConfig:
    """There is a door to ask at: metrics are on unless they were turned off."""
    if config.telemetry.metrics is not None:
        return config
    return replace(config, telemetry=replace(config.telemetry, metrics=True))


def _pem(path: str | None) -> bytes | None:
    return None if path is None else Path(path).read_bytes()


def _api_server() -> type[ApiServer]:
    try:
        from holdfast.api.server import ApiServer  # noqa: PLC0415 - what it needs is an extra
    except ModuleNotFoundError as error:
        raise InvalidServer(f"{error.name} is not installed: pip install 'holdfast[server]'") from error
    return ApiServer
