"""tests/unit/engine/test_following.py over HTTP."""

from tests.unit.engine.test_following import *  # noqa: F403
