"""What a door sees of the engine: the contract's protocols, one attribute each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.contract.executions import Executions
from holdfast.contract.explanations import Explanations
from holdfast.contract.feeds import Feeds
from holdfast.contract.metrics import Metrics
from holdfast.contract.operation import Api
from holdfast.contract.tasks import Tasks
from holdfast.contract.upkeep import Upkeep
from holdfast.contract.workers import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Nouns:
    """`keys` is `contract.keys.Keys` where the engine has any, `payload_bytes` how large one payload may be."""

    api: Api
    executions: Executions
    tasks: Tasks
    workers: Sessions
    upkeep: Upkeep
    feeds: Feeds
    keys: Any = None
    payload_bytes: int = 64 * 1024 * 1024
    explanations: Explanations | None = None
    metrics: Metrics | None = None
    """If they are counted."""
