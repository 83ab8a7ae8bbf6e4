"""tests/unit/engine/test_fork.py over HTTP."""

from tests.unit.engine.test_fork import *  # noqa: F403
