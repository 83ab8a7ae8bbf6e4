"""tests/unit/engine/test_reset_promises.py over HTTP."""

from tests.unit.engine.test_reset_promises import *  # noqa: F403
