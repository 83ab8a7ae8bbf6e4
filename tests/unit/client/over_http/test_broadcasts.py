"""tests/unit/engine/test_broadcasts.py over HTTP."""

from tests.unit.engine.test_broadcasts import *  # noqa: F403
