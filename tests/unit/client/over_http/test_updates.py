"""tests/unit/engine/test_updates.py over HTTP."""

from tests.unit.engine.test_updates import *  # noqa: F403
