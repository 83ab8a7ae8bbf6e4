"""The gRPC server: on the event loop that the engine runs on, beside the other doors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from grpc_reflection.v1alpha import reflection
from grpc_reflection.v1alpha.reflection_pb2_grpc import add_ServerReflectionServicer_to_server

from holdfast.errors import DeadlinePassed, HoldfastError, InvalidServer
from holdfast.server.auth.settings import is_loopback
from holdfast.server.engine_api import EngineApi
from holdfast.server.grpc.calls import (
    Call,
    Caller,
    Guard,
    Method,
    break_down,
    enter,
    log,
    read_message,
    refuse,
)
from holdfast.server.grpc.deadlines import Deadlines
from holdfast.server.grpc.dispatch import SERVICE, Dispatch
from holdfast.server.grpc.payload_checks import check_payloads, payload_fields
from holdfast.server.grpc.settings import GrpcSettings
from holdfast.server.grpc.tasks import TaskDispatch
from holdfast.server.grpc.worker_service import WORKER_SERVICE, WorkerService

TokenKey = Callable[[str, str], bytes]
"""What the tokens of an execution are made from, by org and execution: see model.tokens."""

STOP_GRACE_S = 5.0
LEAST_GRACE_S = 1.0


class GrpcServer:
    """`start` listens, `stop` sends workers away and lets calls end. `token_key` is what workers make tokens from."""

    def __init__(self, engine_api: EngineApi, guard: Guard, settings: GrpcSettings, *, token_key: TokenKey) -> None:
        self._guard = guard
        self._settings = settings
        self._methods = (*Dispatch(engine_api).methods(), *TaskDispatch(engine_api).methods())
        self._workers = WorkerService(engine_api, guard, settings, token_key)
        self._deadlines = Deadlines(settings.call_limit_s)
        self._health = health.aio.HealthServicer()
        self._server: Any = None
        self.port = settings.port

    @property
    def address(self) -> str:
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{'grpcs' if self._settings.tls_key else 'grpc'}://{self.address}"

    async def start(self) -> None:
        settings = self._settings
        self._server = grpc.aio.server(options=settings.channel_options)
        self._server.add_generic_rpc_handlers(
            (
                _handlers(SERVICE, {m.name: self._unary(m) for m in self._methods}),
                _handlers(
                    WORKER_SERVICE,
                    {
                        "WorkerSession": grpc.stream_stream_rpc_method_handler(self._workers.session),
                        **{m.name: self._unary(m) for m in self._workers.methods()},
                    },
                ),
            )
        )
        services = [SERVICE, WORKER_SERVICE]
        add_HealthServicer_to_server(self._health, self._server)
        if settings.reflection:
            names = (*services, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME)
            add_ServerReflectionServicer_to_server(_Reflection(self._guard, names), self._server)
        self.port = self._listen()
        if settings.tls_key is None and not is_loopback(settings.host):
            log.warning("the gRPC door on %s is not encrypted: keys and payloads can be read on the way", self.address)
        await self._server.start()
        for name in ("", *services):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    def _listen(self) -> int:
        settings = self._settings
        try:
            if settings.tls_key is not None and settings.tls_certificate is not None:
                pair = [(settings.tls_key, settings.tls_certificate)]
                return int(self._server.add_secure_port(self.address, grpc.ssl_server_credentials(pair)))
            return int(self._server.add_insecure_port(self.address))
        except RuntimeError as error:
            raise InvalidServer(
                f"the gRPC door can't listen on {self.address}: {error}; is the port taken?", address=self.address
            ) from error

    async def stop(self) -> None:
        """Workers are told and may report what they hold within the grace; other calls may end in what is left of it,
        within a few seconds."""
        server, self._server = self._server, None
        if server is None:
            return
        grace_s, began = self._settings.common.shutdown_grace_s, time.monotonic()
        await self._health.enter_graceful_shutdown()
        await self._workers.stop(grace_s)
        left_s = grace_s - (time.monotonic() - began)
        await server.stop(min(max(left_s, LEAST_GRACE_S), STOP_GRACE_S))

    def _unary(self, method: Method) -> Any:
        deadlines = self._deadlines
        payloads = payload_fields(method.request)

        async def handle(data: bytes, context: Any) -> bytes:
            watched = deadlines.begin()
            try:
                return await self._answer(method, payloads, data, context)
            except HoldfastError as error:
                await refuse(context, error)
            except asyncio.CancelledError:
                if not watched.expired:
                    raise
                watched.task.uncancel()
                late = DeadlinePassed(f"{method.name} has found no answer within {deadlines.limit_s:g} s")
                await refuse(context, late)
            except grpc.aio.AbortError:
                raise
            except Exception as error:  # noqa: BLE001 - the caller must not see it, the log must
                await break_down(context, method.name, error)
            finally:
                deadlines.end(watched)

        return grpc.unary_unary_rpc_method_handler(handle)

    async def _answer(self, method: Method, payloads: tuple[str, ...], data: bytes, context: Any) -> bytes:
        caller = Caller(context)
        principal = await caller.identify(self._guard)
        message = read_message(method.request, data)
        org = enter(principal, method.role, message.org_id)
        check_payloads(message, payloads, self._settings.common)
        answer = await method.handle(Call(principal, org, caller.request_id), message)
        return bytes(answer.SerializeToString())


def _handlers(service: str, methods: dict[str, Any]) -> Any:
    return grpc.method_handlers_generic_handler(service, methods)


class _Reflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]  # grpc has no types
    """Shown to whoever may come in at all."""

    def __init__(self, guard: Guard, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self._guard = guard

    async def ServerReflectionInfo(self, request_iterator: Any, unused_context: Any) -> Any:  # noqa: N802 - as in the proto
        try:
            await Caller(unused_context).identify(self._guard)
        except HoldfastError as error:
            await refuse(unused_context, error)
        async for answer in super().ServerReflectionInfo(request_iterator, unused_context):
            yield answer
