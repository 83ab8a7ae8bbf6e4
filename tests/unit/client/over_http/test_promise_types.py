"""tests/unit/engine/test_promise_types.py over HTTP."""

from tests.unit.engine.test_promise_types import *  # noqa: F403
