"""tests/unit/engine/test_start.py over HTTP."""

from tests.unit.engine.test_start import *  # noqa: F403
