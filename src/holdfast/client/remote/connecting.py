"""`Client.connect`: from the address of a server to a client."""

from __future__ import annotations

import ssl
from collections.abc import Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from holdfast.client.remote.caller import Caller
from holdfast.client.remote.http_api import HttpApi
from holdfast.contract.system import WhoAmI

if TYPE_CHECKING:
    from holdfast.client.client import Client


class Connecting:
    """Await it for a client, which is to be closed; or use it in `async with`, which closes it."""

    def __init__(
        self, make: type[Client], url: str, api_key: str | None, org: str | None, tls: ssl.SSLContext | None
    ) -> None:
        self._make = make
        self._caller = Caller(url, api_key, tls=tls)
        self._org = org
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, None, Client]:
        return self._connect().__await__()

    async def __aenter__(self) -> Client:
        return await self._connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()

    async def _connect(self) -> Client:
        """The key decides which org it is. A key that does not count is found out here."""
        api = HttpApi(self._caller)
        try:
            me = await api.call(WhoAmI())
        except BaseException:
            await self._caller.close()
            raise
        org = self._org if me.key_id is None and self._org is not None else me.org
        client = self._make(api, org, payload_limit=me.payload_bytes)
        client._on_close = self._caller.close  # noqa: SLF001 - this is how a client is made
        client.portal.open()
        self._client = client
        return client
