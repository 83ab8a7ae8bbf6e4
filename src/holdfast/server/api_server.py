"""One process, one loop, all doors: HTTP by uvicorn, and whatever else joins.

Stopping goes from the outside in: nothing new is accepted, streams and long polls end, requests under way finish
within the grace, then the doors are shut. The engine is stopped afterwards by whoever has started it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import uvicorn

from holdfast.config import ServerConfig
from holdfast.errors import InvalidServer
from holdfast.server.auth import Authenticator, AuthSettings, open_authenticator
from holdfast.server.engine_api import EngineApi
from holdfast.server.rest.app import RestApp
from holdfast.server.rest.protocol import GuardedHttp

log = logging.getLogger("holdfast.server")


class Listener(Protocol):
    """Another way in, on the same loop."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class ApiServer:
    """Serves an engine. `url` is where, once it is started."""

    def __init__(
        self,
        engine_api: EngineApi,
        config: ServerConfig,
        auth: AuthSettings | None = None,
        others: Sequence[Callable[[Authenticator], Listener]] = (),
    ) -> None:
        self._engine_api = engine_api
        self._others = others
        self._config = config
        self._auth = auth
        self._uvicorn: uvicorn.Server | None = None
        self._socket: socket.socket | None = None
        self._app: RestApp | None = None
        self.authenticator: Authenticator | None = None
        self.listeners: list[Listener] = []
        """The other doors, which are started and stopped with this one."""

    @property
    def port(self) -> int:
        if self._socket is None:
            raise InvalidServer("the server is not started", field="port")
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        host = self._config.host
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self._config.tls_certificate else 'http'}://{shown}:{self.port}"

    async def start(self) -> None:
        """Raises UnprotectedServer if others could come in without a key, InvalidServer if it can't listen there."""
        config = self._config
        self.authenticator = await open_authenticator(self._engine_api.keys, self._auth, (config.host,), config)
        tls = _tls(config)
        self._socket = _listen(config)
        self._app = RestApp(self._engine_api, self.authenticator, config)
        served = uvicorn.Config(
            self._app,
            http=GuardedHttp,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=round(config.keep_alive_s),
            timeout_graceful_shutdown=max(1, round(config.shutdown_grace_s)),
        )
        served.load()
        served.ssl = tls
        GuardedHttp.configure(served, config)
        server = uvicorn.Server(served)
        # Its main loop, which wakes ten times a second to write the date and look for signals, is not needed here.
        server.lifespan = served.lifespan_class(served)
        try:
            await server.startup(sockets=[self._socket])
        except BaseException:
            self._socket.close()
            raise
        self._uvicorn = server
        try:
            for make in self._others:
                listener = make(self.authenticator)
                await listener.start()
                self.listeners.append(listener)
        except BaseException:
            await self.stop()
            raise
        if tls is None and not _is_local(config.host):
            log.warning("listening on %s without TLS: keys and payloads can be read on the way", config.host)
        log.info("listening on %s", self.url)

    async def stop(self) -> None:
        server, self._uvicorn = self._uvicorn, None
        if server is None:
            return
        for listening in server.servers:
            listening.close()
        assert self._app is not None, "made before the server"
        await self._app.close()
        await asyncio.gather(self._finish(server), *(listener.stop() for listener in self.listeners))
        self._socket = None

    async def _finish(self, server: uvicorn.Server) -> None:
        """Idle connections are closed, the others after what they are busy with, or when the grace is over. uvicorn's
        own way of waiting looks every tenth of a second."""
        state = server.server_state
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            _, late = await asyncio.wait(state.tasks, timeout=self._config.shutdown_grace_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for connection in list(state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        for listening in server.servers:
            await listening.wait_closed()


def _is_local(host: str) -> bool:
    return host in {"localhost", "::1"} or host.startswith("127.")


def _listen(config: ServerConfig) -> socket.socket:
    try:
        found = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidServer(f"can't listen on {config.host!r}: {error}", field="host") from error
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise InvalidServer(
            f"can't listen on {config.host} port {config.port}: {error.strerror or error}; is another server running?",
            field="port",
        ) from error
    listening.setblocking(False)
    return listening


def _tls(config: ServerConfig) -> Any:
    if config.tls_certificate is None:
        if config.tls_key is not None:
            raise InvalidServer("a TLS key needs its certificate", field="tls_certificate")
        return None
    for field in ("tls_certificate", "tls_key"):
        path = getattr(config, field)
        if path is not None and not Path(path).is_file():
            raise InvalidServer(f"{field}: there is no file {path!r}", field=field)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.tls_certificate, config.tls_key)
    except (ssl.SSLError, OSError) as error:
        raise InvalidServer(f"the TLS certificate and key can't be used: {error}", field="tls_certificate") from error
    return context
