"""tests/unit/engine/test_messages.py over HTTP."""

from tests.unit.engine.test_messages import *  # noqa: F403
