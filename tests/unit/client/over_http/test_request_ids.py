"""tests/unit/engine/test_request_ids.py over HTTP."""

from tests.unit.engine.test_request_ids import *  # noqa: F403
