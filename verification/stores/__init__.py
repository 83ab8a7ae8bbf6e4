"""The conformance suite: what every store must do, as tests.

    class TestMyStore(StoreConformance):
        shared = True                        # opening twice gives two views of one database

        @pytest.fixture
        async def open_store(self):          # called with a clock and a source; answers an open store
            ...                              # closes what it opened

The methods are coroutines and use plain asserts; a runner such as pytest-asyncio has to await them.
"""

from __future__ import annotations

from verification.stores.bench import Bench, OpenStore
from verification.stores.claiming import Claiming
from verification.stores.deletions import Deletions
from verification.stores.deliveries import Deliveries
from verification.stores.failing import Failing
from verification.stores.family import Family
from verification.stores.keys import Keys
from verification.stores.listing import Listing
from verification.stores.loading import Loading
from verification.stores.messages import Promises, PublishedEvents, Subscriptions
from verification.stores.pauses import Pauses
from verification.stores.reading import Reading
from verification.stores.sharing import Sharing
from verification.stores.task_output import TaskOutput
from verification.stores.writing import Writing

__all__ = ["Bench", "OpenStore", "StoreConformance"]


class StoreConformance(
    Writing,
    Failing,
    Loading,
    Family,
    Claiming,
    Reading,
    Listing,
    Sharing,
    Promises,
    Subscriptions,
    PublishedEvents,
    Deliveries,
    Keys,
    TaskOutput,
    Pauses,
    Deletions,
):
    """Everything a store promises to the engine."""
