"""tests/unit/engine/test_retry.py over HTTP."""

from tests.unit.engine.test_retry import *  # noqa: F403
