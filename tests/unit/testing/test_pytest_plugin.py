"""The pytest plugin, as a project sees it that uses Holdfast: each test runs pytest in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

PLUGIN = "holdfast.testing.pytest_plugin"
ASYNCIO = ("-p", "pytest_asyncio.plugin")
SCOPE = "asyncio_default_fixture_loop_scope = function"
WORKFLOWS = """
import pytest
from holdfast import WorkflowContext, workflow

runs = []

@workflow
async def nap(ctx: WorkflowContext) -> str:
    await ctx.sleep(86_400)
    return "woken"

@workflow
async def moody(ctx: WorkflowContext) -> None:
    runs.append(1)
    await (ctx.sleep(1) if len(runs) == 1 else ctx.task("other"))
"""


@pytest.fixture
def run_pytest(tmp_path: Path):
    def run(tests: str, *options: str, config: str = "") -> subprocess.CompletedProcess[str]:
        (tmp_path / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\n{config}\n", "utf-8")
        (tmp_path / "test_it.py").write_text(WORKFLOWS + dedent(tests), "utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", *options]
        # Other plugins take most of the time, and are none of ours.
        environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    return run


AWAITED = """
    {mark}
    async def test_awaited(holdfast_env):
        env = await holdfast_env(workflows=[nap])
        assert "woken" == await env.run(nap)

    {mark}
    async def test_entered(holdfast_env):
        async with holdfast_env(workflows=[nap]) as env:
            assert "woken" == await env.run(nap)
"""


@pytest.mark.parametrize(
    ("config", "mark"), [("asyncio_mode = auto", ""), ("asyncio_mode = strict", "@pytest.mark.asyncio")]
)
def test_environment_may_be_awaited_or_entered(run_pytest, config, mark):
    """In both modes of pytest-asyncio; what was awaited is closed at the end."""
    done = run_pytest(AWAITED.format(mark=mark), *ASYNCIO, config=f"{config}\n{SCOPE}")

    assert 0 == done.returncode, done.stdout
    assert "2 passed" in done.stdout


def test_histories_are_replayed_at_the_end(run_pytest):
    """A workflow that would break after a crash breaks its test, unless the test says otherwise."""
    done = run_pytest(
        """
        async def test_found(holdfast_env):
            env = await holdfast_env(workflows=[moody])
            await env.run(moody)

        async def test_found_in_a_block(holdfast_env):
            runs.clear()
            with pytest.raises(Exception, match="event 2 records: timer 1"):
                async with holdfast_env(workflows=[moody]) as env:
                    await env.run(moody)

        async def test_left_alone(holdfast_env):
            runs.clear()
            env = await holdfast_env(workflows=[moody], replay=False)
            await env.run(moody)
        """,
        *ASYNCIO,
        config=f"asyncio_mode = auto\n{SCOPE}",
    )

    assert 1 == done.returncode, done.stdout
    assert "3 passed, 1 error" in done.stdout
    assert "DeterminismError" in done.stdout


def test_without_an_asyncio_plugin_the_block_works(run_pytest):
    """The test brings its own loop; awaiting says what to write instead."""
    done = run_pytest(
        """
        import asyncio

        def test_entered(holdfast_env):
            async def scenario():
                async with holdfast_env(workflows=[nap]) as env:
                    return await env.run(nap)
            assert "woken" == asyncio.run(scenario())

        def test_awaited(holdfast_env):
            async def scenario():
                await holdfast_env(workflows=[nap])
            with pytest.raises(RuntimeError, match="async with holdfast_env"):
                asyncio.run(scenario())

        def test_mock(mock_workflow):
            mock = mock_workflow()
            assert "woken" == mock.run(nap)
            assert 1 == mock.slept.days
        """
    )

    assert 0 == done.returncode, done.stdout
    assert "3 passed" in done.stdout


def test_plugin_is_light(run_pytest):
    """A project that does not use the fixtures loads neither engine nor database."""
    done = run_pytest(
        """
        def test_nothing_is_loaded():
            pass
        """
    )
    code = (
        f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; "
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('holdfast.testing')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert 0 == done.returncode, done.stdout
    assert "['holdfast']" == loaded.stdout.strip()
