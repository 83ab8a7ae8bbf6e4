"""tests/unit/engine/test_mailbox.py over HTTP."""

from tests.unit.engine.test_mailbox import *  # noqa: F403
