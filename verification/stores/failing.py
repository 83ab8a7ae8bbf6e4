"""What fails leaves nothing and takes nobody with it; what passes by itself is tried again."""

from __future__ import annotations

import asyncio
from unittest import SkipTest

from holdfast.model.executions import Ready
from holdfast.store.protocol import Changes, Loaded, LoadPlan
from verification.stores.bench import START, Bench, OpenStore
from verification.stores.records import ORG, an_execution
from verification.stores.writing import start


class Failing:
    def transient_error(self) -> Exception:
        """An error of the store's driver that passes by itself, for `decide` to raise."""
        raise SkipTest("this store's transient errors are not known to the suite")

    async def test_a_poison_member_fails_alone(self, open_store: OpenStore) -> None:
        """A member that fails, in its decision or in its rows, takes nobody with it and leaves nothing."""
        bench = await Bench.opened(open_store)

        def bug(_: Loaded) -> Changes:
            raise KeyError("bug")

        good = [start(an_execution(number)) for number in range(1, 49)]
        bad_row = start(an_execution(50, last_seq=-1))
        outcomes = await bench.run_together([(LoadPlan(), decide) for decide in [bug, *good, bad_row]])

        assert isinstance(outcomes[0], KeyError)
        assert isinstance(outcomes[-1], Exception)
        assert all(isinstance(outcome, Loaded) for outcome in outcomes[1:-1])
        found = await bench.store.executions(ORG, [an_execution(number).id for number in range(51)])
        assert len(found) == 48

    async def test_a_failed_decision_leaves_no_trace_in_what_is_loaded_next(self, open_store: OpenStore) -> None:
        """Records changed in place by a decision that fails are loaded as committed."""
        bench = await Bench.opened(open_store)
        execution = an_execution(ready=Ready(since_at=START))
        await bench.write(new_executions=[execution], ready={execution.id: execution})
        plan = LoadPlan(executions={execution.id})

        def spoil_and_fail(loaded: Loaded) -> Changes:
            found = loaded.executions[execution.id]
            assert found.ready is not None
            found.last_seq, found.ready.worker = 99, "w-9"
            raise KeyError("bug")

        await bench.run_together([(plan, spoil_and_fail)])

        loaded = await bench.load(executions={execution.id})
        assert loaded.executions == {execution.id: an_execution(ready=Ready(since_at=START))}

    async def test_a_transient_failure_is_decided_again(self, open_store: OpenStore) -> None:
        """From a fresh load, and the batch never learns of it."""
        bench = await Bench.opened(open_store)
        execution = an_execution()
        await bench.write(new_executions=[execution])
        seen: list[int] = []

        def decide(loaded: Loaded) -> Changes:
            found = loaded.executions[execution.id]
            seen.append(found.last_seq)
            found.last_seq += 1
            if len(seen) < 3:
                raise self.transient_error()
            return Changes(changed_executions={found.id: found})

        await bench.run(LoadPlan(executions={execution.id}), decide)

        assert seen == [0, 0, 0]
        assert (await bench.store.executions(ORG, [execution.id]))[execution.id].last_seq == 1

    async def test_closing_writes_what_waits(self, open_store: OpenStore) -> None:
        """`close` is not a way to lose work."""
        bench = await Bench.opened(open_store)
        outcomes = bench.run_together([(LoadPlan(), start(an_execution()))])
        waiting = asyncio.ensure_future(outcomes)
        await asyncio.sleep(0)
        await bench.store.close()

        assert isinstance((await waiting)[0], Loaded)
