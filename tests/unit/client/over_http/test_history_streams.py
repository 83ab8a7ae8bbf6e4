"""tests/unit/engine/test_history_streams.py over HTTP."""

from tests.unit.engine.test_history_streams import *  # noqa: F403
