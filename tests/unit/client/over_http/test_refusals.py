"""tests/unit/engine/test_refusals.py over HTTP."""

from tests.unit.engine.test_refusals import *  # noqa: F403
