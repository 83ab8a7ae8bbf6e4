"""tests/unit/engine/test_idempotency.py over HTTP."""

from tests.unit.engine.test_idempotency import *  # noqa: F403
