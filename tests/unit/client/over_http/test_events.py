"""tests/unit/engine/test_events.py over HTTP."""

from tests.unit.engine.test_events import *  # noqa: F403
