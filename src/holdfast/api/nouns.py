"""What a door sees of the engine: the contract's protocols, one attribute each."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.contract.feeds import Feeds
from holdfast.contract.keys import KeyChecks
from holdfast.contract.operation import Api
from holdfast.contract.upkeep import Upkeep
from holdfast.contract.workers import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Nouns:
    """`keys` is what the guard asks, `payload_bytes` how large one payload may be."""

    api: Api
    workers: Sessions
    upkeep: Upkeep
    feeds: Feeds
    keys: KeyChecks
    payload_bytes: int = 64 * 1024 * 1024
