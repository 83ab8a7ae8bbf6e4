"""tests/unit/engine/test_continue_as_new.py over HTTP."""

from tests.unit.engine.test_continue_as_new import *  # noqa: F403
