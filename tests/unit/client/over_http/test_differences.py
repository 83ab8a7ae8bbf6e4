"""What is left out over HTTP."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.unit.client.over_http.conftest import DIFFERENT


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_left_out_is_there(name: str):
    """Or a test that was renamed would be run, or its name be kept for nothing."""
    module, _, test = name.partition("::")

    assert hasattr(import_module(f"tests.unit.engine.{module.removesuffix('.py')}"), test.partition("[")[0])
