"""The conformance suite: what every store must do, as tests.

    class TestMyStore(StoreConformance):
        shared = True                        # opening twice gives two views of one database

        @pytest.fixture
        async def open_store(self):          # called with a clock and a source; answers an open store
            ...                              # closes what it opened

The methods are coroutines and use plain asserts; a runner such as pytest-asyncio has to await them.
"""

from __future__ import annotations

from holdfast.testing.stores.bench import Bench, OpenStore
from holdfast.testing.stores.claiming import Claiming
from holdfast.testing.stores.deletions import Deletions
from holdfast.testing.stores.deliveries import Deliveries
from holdfast.testing.stores.failing import Failing
from holdfast.testing.stores.family import Family
from holdfast.testing.stores.keys import Keys
from holdfast.testing.stores.listing import Listing
from holdfast.testing.stores.loading import Loading
from holdfast.testing.stores.messages import Promises, PublishedEvents, Subscriptions
from holdfast.testing.stores.pauses import Pauses
from holdfast.testing.stores.plain_tables import PlainTables
from holdfast.testing.stores.reading import Reading
from holdfast.testing.stores.sharing import Sharing
from holdfast.testing.stores.snapshots import Snapshots
from holdfast.testing.stores.task_output import TaskOutput
from holdfast.testing.stores.writing import Writing

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
    PlainTables,
    Snapshots,
    Deletions,
):
    """Everything a store promises to the engine."""
