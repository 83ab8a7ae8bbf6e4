"""The gRPC server: on the event loop that the engine runs on, beside the other doors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from grpc_reflection.v1alpha import reflection

from holdfast.api.auth.settings import is_loopback
from holdfast.api.grpc.calls import (
    Call,
    Guard,
    Method,
    break_down,
    enter,
    identify,
    log,
    read_message,
    refuse,
    request_id_of,
)
from holdfast.api.grpc.dispatch import SERVICE, Dispatch
from holdfast.api.grpc.settings import GrpcSettings
from holdfast.api.grpc.strangers import check_payloads, payload_fields
from holdfast.api.grpc.worker_service import WORKER_SERVICE, WorkerDoor
from holdfast.api.nouns import Nouns
from holdfast.errors import DeadlinePassed, HoldfastError, InvalidServer

TokenKey = Callable[[str, str], bytes]
"""What the tokens of an execution are made from, by org and execution: see model.tokens."""

STOP_GRACE_S = 5.0


class GrpcServer:
    """`start` listens, `stop` sends workers away and lets calls end. `token_key` is what workers make tokens from."""

    def __init__(self, nouns: Nouns, guard: Guard, settings: GrpcSettings, *, token_key: TokenKey) -> None:
        self._guard = guard
        self._settings = settings
        self._dispatch = Dispatch(nouns)
        self._workers = WorkerDoor(nouns, guard, settings, token_key)
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
        self._server = grpc.aio.server(options=settings.channel_options, interceptors=(_Doorkeeper(self._guard),))
        self._server.add_generic_rpc_handlers(
            (
                _handlers(SERVICE, {m.name: self._unary(m) for m in self._dispatch.methods()}),
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
            reflection.enable_server_reflection(names, self._server)
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
        """Workers hand over at once and are told to go elsewhere; other calls may end within a few seconds."""
        if self._server is None:
            return
        await self._health.enter_graceful_shutdown()
        await self._workers.stop()
        await self._server.stop(STOP_GRACE_S)
        self._server = None

    def _unary(self, method: Method) -> Any:
        limit_s = self._settings.call_limit_s
        payloads = payload_fields(method.request)

        async def handle(data: bytes, context: Any) -> bytes:
            try:
                async with asyncio.timeout(limit_s):
                    return await self._answer(method, payloads, data, context)
            except HoldfastError as error:
                await refuse(context, error)
            except TimeoutError:
                await refuse(context, DeadlinePassed(f"{method.name} has found no answer within {limit_s:g} s"))
            except (asyncio.CancelledError, grpc.aio.AbortError):
                raise
            except Exception as error:  # noqa: BLE001 - the caller must not see it, the log must
                await break_down(context, method.name, error)

        return grpc.unary_unary_rpc_method_handler(handle)

    async def _answer(self, method: Method, payloads: tuple[str, ...], data: bytes, context: Any) -> bytes:
        principal = await identify(self._guard, context)
        message = read_message(method.request, data)
        org = enter(principal, method.role, message.org_id)
        check_payloads(message, payloads, self._settings.common)
        answer = await method.handle(Call(principal, org, request_id_of(context)), message)
        return bytes(answer.SerializeToString())


def _handlers(service: str, methods: dict[str, Any]) -> Any:
    return grpc.method_handlers_generic_handler(service, methods)


class _Doorkeeper(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """The reflection service comes with handlers of its own: it is shown to whoever may come in at all."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        if handler is None or not details.method.startswith(f"/{reflection.SERVICE_NAME}/"):
            return handler
        shown = handler.stream_stream

        async def guarded(requests: Any, context: Any) -> Any:
            try:
                await identify(self._guard, context)
            except HoldfastError as error:
                await refuse(context, error)
            async for answer in shown(requests, context):
                yield answer

        return grpc.stream_stream_rpc_method_handler(guarded, handler.request_deserializer, handler.response_serializer)
