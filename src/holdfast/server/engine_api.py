"""What a door sees of the engine: the contract's protocols, one attribute each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.contract.deployments import Deployments
from holdfast.contract.executions import Executions
from holdfast.contract.explanations import Explanations
from holdfast.contract.feeds import Feeds
from holdfast.contract.messages import Messages
from holdfast.contract.metrics import Metrics
from holdfast.contract.tasks import Tasks
from holdfast.contract.upkeep import Upkeep
from holdfast.contract.workers import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineApi:
    """`keys` is `contract.keys.Keys` where the engine has any, `payload_bytes` how large one payload may be."""

    executions: Executions
    messages: Messages
    tasks: Tasks
    workers: Sessions
    upkeep: Upkeep
    feeds: Feeds
    keys: Any = None
    deployments: Deployments | None = None
    payload_bytes: int = 64 * 1024 * 1024
    explanations: Explanations | None = None
    metrics: Metrics | None = None
    """If they are counted."""
