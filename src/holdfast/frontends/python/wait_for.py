"""One `asyncio.wait_for` for all versions of Python.

Python 3.11 runs what is waited for as a task of its own, later versions in place, which is another order of events: a
history made on one would not replay on the other. In a workflow it behaves as in 3.12 everywhere.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Awaitable
from typing import Any

from holdfast.frontends.python.loop import DeterministicLoop


async def _in_place(awaitable: Awaitable[Any], timeout: float | None) -> Any:
    if timeout is not None and timeout <= 0:
        future = asyncio.ensure_future(awaitable)
        if not future.done():
            future.cancel()
            await asyncio.wait([future])
        try:
            return future.result()
        except asyncio.CancelledError as error:
            raise TimeoutError from error
    async with asyncio.timeout(timeout):
        return await awaitable


def settle_wait_for() -> None:
    """Make `asyncio.wait_for` the same inside workflows; elsewhere it stays what it is."""
    if sys.version_info >= (3, 12):
        return
    of_python = asyncio.wait_for

    @functools.wraps(of_python)
    async def wait_for(fut: Any, timeout: float | None) -> Any:
        inside = isinstance(asyncio.get_running_loop(), DeterministicLoop)
        return await (_in_place(fut, timeout) if inside else of_python(fut, timeout))

    asyncio.wait_for = asyncio.tasks.wait_for = wait_for
