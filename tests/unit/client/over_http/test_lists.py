"""tests/unit/engine/test_lists.py over HTTP."""

from tests.unit.engine.test_lists import *  # noqa: F403
