"""tests/unit/engine/test_complete_later.py over HTTP."""

from tests.unit.engine.test_complete_later import *  # noqa: F403
