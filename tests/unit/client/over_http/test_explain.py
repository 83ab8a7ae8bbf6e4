"""tests/unit/engine/test_explain.py over HTTP."""

from tests.unit.engine.test_explain import *  # noqa: F403
