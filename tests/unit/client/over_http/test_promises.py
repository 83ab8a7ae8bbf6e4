"""tests/unit/engine/test_promises.py over HTTP."""

from tests.unit.engine.test_promises import *  # noqa: F403
