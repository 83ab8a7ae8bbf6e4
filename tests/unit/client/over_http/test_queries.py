"""tests/unit/engine/test_queries.py over HTTP."""

from tests.unit.engine.test_queries import *  # noqa: F403
