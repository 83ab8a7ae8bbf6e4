"""tests/unit/engine/test_cancel.py over HTTP."""

from tests.unit.engine.test_cancel import *  # noqa: F403
