"""Environments on the store that the tests are run on."""

from __future__ import annotations

from functools import partial

import pytest

from holdfast.testing import WorkflowEnvironment
from tests.both_stores import STORE


@pytest.fixture
def on_the_tests_store(request: pytest.FixtureRequest, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment is in memory unless it is told else; on PostgreSQL it is told."""
    if STORE == "postgres":
        monkeypatch.setattr(request.module, "WorkflowEnvironment", partial(WorkflowEnvironment, url=database_url))
