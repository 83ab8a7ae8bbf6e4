"""Whether a session is ours for as long as its connection, or a pooler gives it to others after each transaction.

It has to be known before anything is set for a session: settings, listeners and prepared statements would stay behind
in a session that others are given next, the application's own among them, and what they set would count for us.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Final
from uuid import uuid4

from holdfast.errors import ServerNotSupported

_PID: Final = "SELECT pg_backend_pid()"
_NOTIFIED_S: Final = 3.0


async def check_sessions(connection: Any, second: AbstractAsyncContextManager[Any], name: str) -> None:
    """Raise if sessions are not ours. `second` is another connection, opened only where there is a pooler at all.

    A pooler makes up the process id that a client is told when it connects. Whether it gives sessions away is found out
    by listening on one connection to what is said on another: not on the same one, since a pooler that has nothing else
    to do gives the same session twice.
    """
    if await connection.fetchval(_PID) == connection.get_server_pid():
        return
    channel = f"holdfast_session_{uuid4().hex}"
    heard = asyncio.Event()

    def on_notified(*_: object) -> None:
        heard.set()

    async with second as telling:
        await connection.add_listener(channel, on_notified)
        await telling.execute(f"NOTIFY {channel}")
        try:
            async with asyncio.timeout(_NOTIFIED_S):
                await heard.wait()
        except TimeoutError:
            raise ServerNotSupported(
                f"{name} is behind a transaction pooler, which gives our sessions to others: write notify=off into the "
                "URL, or connect to the server itself",
                path=name,
                found="transaction pooler",
            ) from None
        finally:
            await connection.remove_listener(channel, on_notified)
