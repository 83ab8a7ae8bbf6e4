"""What the tests share: engines on files of their own, a way to wait for a condition, hypothesis' settings."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import settings

from holdfast import Engine, EngineConfig, StoreConfig, WorkerConfig

settings.register_profile("holdfast", deadline=None, print_blob=True)
settings.load_profile("holdfast")

PATIENCE_S = 20.0

# An fsync per commit proves nothing here, and a body that never ends must not hold up the end of its test.
# The secret is known, so that a replay gives the same tokens.
SECRET = "the secret of all tests"
QUICK = EngineConfig(
    store=StoreConfig(synchronous="normal"), worker=WorkerConfig(shutdown_grace_s=0.2), secret_key=SECRET
)


class OpenEngine(Protocol):
    """The `engine` fixture. Every call opens another Engine; those of one test share a file unless told otherwise."""

    async def __call__(
        self,
        *,
        workflows: Iterable[Callable[..., Any]] = (),
        tasks: Iterable[Callable[..., Any]] = (),
        config: EngineConfig = QUICK,
        url: str | None = None,
        **options: Any,
    ) -> Engine: ...


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The file that the engines of this test use."""
    return tmp_path / "holdfast.db"


@pytest.fixture
async def engine(database: Path) -> AsyncIterator[OpenEngine]:
    """Opens engines, and shuts down at the end what the test has left open."""
    async with AsyncExitStack() as opened:

        async def open_engine(
            *,
            workflows: Iterable[Callable[..., Any]] = (),
            tasks: Iterable[Callable[..., Any]] = (),
            config: EngineConfig = QUICK,
            url: str | None = None,
            **options: Any,
        ) -> Engine:
            where = url if url is not None else f"sqlite:///{database}"
            return await opened.enter_async_context(
                Engine(where, workflows=workflows, tasks=tasks, config=config, **options)
            )

        yield open_engine


async def until(condition: Callable[[], Any], *, timeout: float = PATIENCE_S) -> Any:
    """Wait until `condition()`, plain or async, gives something true; that is the answer."""
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"still not so after {timeout} s: {_text_of(condition)}")
        await asyncio.sleep(0.002)


def _text_of(condition: Callable[[], Any]) -> str:
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return repr(condition)
