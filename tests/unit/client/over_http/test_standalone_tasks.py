"""tests/unit/engine/test_standalone_tasks.py over HTTP."""

from tests.unit.engine.test_standalone_tasks import *  # noqa: F403
