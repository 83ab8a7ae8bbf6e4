"""tests/unit/engine/test_state.py over HTTP."""

from tests.unit.engine.test_state import *  # noqa: F403
