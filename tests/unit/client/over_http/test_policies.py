"""tests/unit/engine/test_policies.py over HTTP."""

from tests.unit.engine.test_policies import *  # noqa: F403
