"""tests/unit/engine/test_task_output.py over HTTP."""

from tests.unit.engine.test_task_output import *  # noqa: F403
