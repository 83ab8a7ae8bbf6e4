"""The pytest plugin: fixtures `holdfast_env` and `mock_workflow`. Loaded by pytest wherever Holdfast is installed.

It must cost nothing in test runs that do not use it: the engine is imported when a fixture is first used. It needs no
asyncio plugin: `async with holdfast_env(...) as env` works under any. Where pytest-asyncio is there, in either mode,
`env = await holdfast_env(...)` works as well, and what the test leaves open is closed at its end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from holdfast.testing import MockWorkflowContext, WorkflowEnvironment


class OpenedEnvironment(AbstractAsyncContextManager["WorkflowEnvironment"], Awaitable["WorkflowEnvironment"]):
    """What `holdfast_env(...)` answers: awaited, an environment until the end of the test; entered, until the end of
    the block. Either way its histories are replayed at the end; of a block that has raised, they are not."""

    def __init__(self, stack: AsyncExitStack | None, replay: bool, options: dict[str, Any]) -> None:
        from holdfast.testing import WorkflowEnvironment  # noqa: PLC0415 - not at the start of every pytest

        self._stack = stack
        self._replay = replay
        self._env = WorkflowEnvironment(**options)

    def __await__(self) -> Generator[Any, None, WorkflowEnvironment]:
        if self._stack is None:
            raise RuntimeError(
                "`await holdfast_env(...)` needs pytest-asyncio; write `async with holdfast_env(...) as env:` instead"
            )
        return self._stack.enter_async_context(self).__await__()

    async def __aenter__(self) -> WorkflowEnvironment:
        return await self._env.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._replay and error is None:
                await self._env.replay_all()
        finally:
            await self._env.__aexit__(kind, error, trace)


class EnvironmentOpener:
    """The `holdfast_env` fixture. Call it with the arguments of `holdfast.testing.WorkflowEnvironment`.

    `replay=False` leaves out the replay of every history at the end.
    """

    def __init__(self, stack: AsyncExitStack | None = None) -> None:
        self._stack = stack

    def __call__(self, *, replay: bool = True, **options: Any) -> OpenedEnvironment:
        return OpenedEnvironment(self._stack, replay, options)


class _PlainFixtures:
    """Without pytest-asyncio."""

    @pytest.fixture
    def holdfast_env(self) -> EnvironmentOpener:
        """Opens environments with virtual time: `async with holdfast_env(workflows=[...]) as env`."""
        return EnvironmentOpener()


def _asyncio_fixtures() -> Any:
    import pytest_asyncio  # noqa: PLC0415 - loaded by pytest already when this is called

    class AsyncioFixtures:
        @pytest_asyncio.fixture
        async def holdfast_env(self) -> AsyncIterator[EnvironmentOpener]:
            """Opens environments with virtual time: `env = await holdfast_env(workflows=[...])`, or as a block."""
            async with AsyncExitStack() as stack:
                yield EnvironmentOpener(stack)

    return AsyncioFixtures()


@pytest.fixture
def mock_workflow() -> Callable[..., MockWorkflowContext]:
    """Makes a MockWorkflowContext."""
    from holdfast.testing import MockWorkflowContext  # noqa: PLC0415 - not at the start of every pytest

    return MockWorkflowContext


def pytest_configure(config: pytest.Config) -> None:
    """Which kind of fixture works depends on the other plugins."""
    # By its module: its name depends on how it was loaded.
    names = {getattr(plugin, "__name__", "") for plugin in config.pluginmanager.get_plugins()}
    has_asyncio = "pytest_asyncio.plugin" in names
    config.pluginmanager.register(_asyncio_fixtures() if has_asyncio else _PlainFixtures(), "holdfast-fixtures")
