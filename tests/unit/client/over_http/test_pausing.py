"""tests/unit/engine/test_pausing.py over HTTP."""

from tests.unit.engine.test_pausing import *  # noqa: F403
