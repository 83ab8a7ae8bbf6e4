"""What `GuardedHttp` relies on in uvicorn, which promises none of it.

When a newer uvicorn fails here, read its `httptools_impl.py` beside `api/rest/protocol.py` before the range in
pyproject.toml is moved."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from holdfast.api.rest.protocol import GuardedHttp

CHANGED = f"uvicorn {uvicorn.__version__} has changed what api/rest/protocol.py relies on"
OVERRIDDEN = {name for name, value in vars(GuardedHttp).items() if inspect.isfunction(value) and name[0] != "_"}
CALLED_BY_UVICORN = {
    "connection_made",
    "connection_lost",
    "data_received",
    "on_headers_complete",
    "on_message_begin",
    "on_message_complete",
    "on_response_complete",
}


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def is_closing(self) -> bool:
        return False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"{}"})


@asynccontextmanager
async def asking() -> AsyncIterator[HttpToolsProtocol]:
    """uvicorn's own protocol, just asked something; the answer comes when the loop goes on."""
    config = uvicorn.Config(app, http=HttpToolsProtocol, lifespan="off", log_config=None)
    config.load()
    protocol = HttpToolsProtocol(config=config, server_state=ServerState(), app_state={})
    protocol.connection_made(Transport())
    protocol.data_received(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    yield protocol
    await asyncio.gather(*protocol.tasks)
    protocol.connection_lost(None)


def test_what_is_overridden_is_called():
    """These are all that `GuardedHttp` has, and uvicorn's own class has them."""
    assert CALLED_BY_UVICORN == OVERRIDDEN
    assert CALLED_BY_UVICORN <= set(vars(HttpToolsProtocol)), CHANGED


@pytest.mark.parametrize("name", ["transport", "cycle", "scope", "loop", "config"])
async def test_a_protocol_has(name):
    async with asking() as protocol:
        assert getattr(protocol, name, None) is not None, f"{CHANGED}: there is no `{name}`"


async def test_a_cycle_writes_to_its_own_transport():
    """The one that `OneWrite` takes the place of; `response_started` says whether a head has been written."""
    other = Transport()
    async with asking() as protocol:
        cycle: Any = protocol.cycle
        assert isinstance(cycle, RequestResponseCycle), CHANGED
        assert cycle.transport is protocol.transport, f"{CHANGED}: a cycle has another transport"
        assert cycle.response_started is False, f"{CHANGED}: `response_started` is not there"
        cycle.transport = other

    assert other.written, f"{CHANGED}: an answer is not written to the transport of its cycle"
    assert cycle.response_started is True, CHANGED


async def test_a_head_and_a_body_are_two_writes():
    """`OneWrite` joins the first two. If there were one, it would hold it back for ever."""
    async with asking() as protocol:
        transport: Any = protocol.transport
    head, *bodies = transport.written

    assert head.endswith(b"\r\n\r\n"), f"{CHANGED}: a head is not written by itself"
    assert b"{}" == b"".join(bodies), CHANGED


async def test_the_end_of_an_answer_is_told_to_the_protocol():
    """`on_response_complete` flushes what the transport of `self.cycle` holds back."""
    told: list[str] = []
    async with asking() as protocol:
        assert protocol.cycle.on_response == protocol.on_response_complete, (
            f"{CHANGED}: the end of an answer is not told"
        )
        protocol.cycle.on_response = lambda: told.append("end")

    assert ["end"] == told, f"{CHANGED}: the end of an answer is not told"
