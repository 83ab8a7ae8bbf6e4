"""tests/unit/engine/test_signals.py over HTTP."""

from tests.unit.engine.test_signals import *  # noqa: F403
