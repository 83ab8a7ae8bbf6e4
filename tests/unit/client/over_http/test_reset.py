"""tests/unit/engine/test_reset.py over HTTP."""

from tests.unit.engine.test_reset import *  # noqa: F403
