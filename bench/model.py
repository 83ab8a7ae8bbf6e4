"""How throughput grows with nodes on one PostgreSQL: a simulation from measured times. `python -m bench.model --help`.

Every node has callers who each want one operation after another. A node works on operations one after another (its own
processor), and meanwhile writes one transaction at a time: that takes all operations that are ready, sends some
statements (round trips), has the server work on them (one of its processors), and waits for the log to be flushed.
Flushes are shared: all who wait when one begins are in it. An operation takes several transactions one after another.
Nothing else is modelled: no locks that nodes fight for, no autovacuum, no checkpoints. So the figures are upper bounds,
and say what runs out first.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What one operation and one transaction cost, in microseconds, and how often."""

    node_us: float
    server_us: float
    transaction_us: float
    round_trips: float
    round_trip_us: float
    flush_us: float
    transactions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Operations per second, how busy each part was, and how many operations shared a transaction."""

    per_second: float
    node: float
    server: float
    log: float
    batch: float


class Simulation:
    """Events in the order of time; ties in the order in which they were made."""

    def __init__(self, costs: Costs, *, nodes: int, callers: int, cores: int) -> None:
        self._costs = costs
        self._nodes = nodes
        self._cores = cores
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        # By node; an operation is how many transactions it still needs.
        self._to_do = [deque([costs.transactions] * callers) for _ in range(nodes)]
        self._ready: list[list[int]] = [[] for _ in range(nodes)]
        self._working = [False] * nodes
        self._writing = [False] * nodes
        self._cores_free = cores
        self._at_server: list[tuple[float, Callable[[], None]]] = []
        self._at_log: list[Callable[[], None]] = []
        self._flushing = False
        self._busy = {"node": 0.0, "server": 0.0, "log": 0.0}
        self.done = 0
        self._written = self._batches = 0

    def run(self, operations: int) -> Answer:
        for node in range(self._nodes):
            self._work(node)
        while self.done < operations:
            self._now, _, event = heapq.heappop(self._events)
            event()
        return Answer(
            per_second=self.done / self._now * 1e6,
            node=self._busy["node"] / self._now / self._nodes,
            server=self._busy["server"] / self._now / self._cores,
            log=self._busy["log"] / self._now,
            batch=self._written / self._batches,
        )

    def _after(self, us: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now + us, next(self._order), event))

    def _work(self, node: int) -> None:
        """The node's processor takes the next operation."""
        if self._working[node] or not self._to_do[node]:
            return
        self._working[node] = True
        left = self._to_do[node].popleft()
        us = self._costs.node_us / self._costs.transactions
        self._busy["node"] += us

        def worked() -> None:
            self._working[node] = False
            self._ready[node].append(left)
            self._write(node)
            self._work(node)

        self._after(us, worked)

    def _write(self, node: int) -> None:
        """A transaction of all that is ready, unless one is under way."""
        if self._writing[node] or not self._ready[node]:
            return
        self._writing[node] = True
        batch, self._ready[node] = self._ready[node], []
        costs = self._costs
        self._written += len(batch)
        self._batches += 1
        # What an operation costs is spread over its transactions.
        served_us = costs.server_us * len(batch) / costs.transactions + costs.transaction_us
        self._after(
            costs.round_trips * costs.round_trip_us,
            lambda: self._serve(served_us, lambda: self._flush(lambda: self._end(node, batch))),
        )

    def _serve(self, us: float, then: Callable[[], None]) -> None:
        if not self._cores_free:
            self._at_server.append((us, then))
            return
        self._cores_free -= 1
        self._busy["server"] += us

        def served() -> None:
            self._cores_free += 1
            if self._at_server:
                self._serve(*self._at_server.pop(0))
            then()

        self._after(us, served)

    def _flush(self, then: Callable[[], None]) -> None:
        self._at_log.append(then)
        if not self._flushing:
            self._flush_all()

    def _flush_all(self) -> None:
        together, self._at_log = self._at_log, []
        self._flushing = bool(together)
        if not together:
            return
        self._busy["log"] += self._costs.flush_us

        def flushed() -> None:
            self._flush_all()
            for then in together:
                then()

        self._after(self._costs.flush_us, flushed)

    def _end(self, node: int, batch: list[int]) -> None:
        """Callers whose operation is over begin their next one at once."""
        for left in batch:
            self.done += left == 1
            self._to_do[node].append(left - 1 if left > 1 else self._costs.transactions)
        self._writing[node] = False
        self._write(node)
        self._work(node)


def main() -> None:
    options = _parser().parse_args()
    costs = Costs(
        node_us=options.node_us,
        server_us=options.server_us,
        transaction_us=options.transaction_us,
        round_trips=options.round_trips,
        round_trip_us=options.round_trip_us,
        flush_us=options.flush_us,
        transactions=options.transactions,
    )
    print(f"{'nodes':>5}  {'operations/s':>12}  {'times one':>9}  {'node':>5}  {'server':>6}  {'log':>5}  {'batch':>6}")
    one = 0.0
    for nodes in options.nodes:
        found = Simulation(costs, nodes=nodes, callers=options.callers, cores=options.cores).run(options.operations)
        one = one or found.per_second
        print(
            f"{nodes:>5}  {found.per_second:>12,.0f}  {found.per_second / one:>9.2f}  {found.node:>5.0%}  "
            f"{found.server:>6.0%}  {found.log:>5.0%}  {found.batch:>6.0f}"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.model", description=(__doc__ or "").partition("\n\n")[0])
    add = parser.add_argument
    add("--node-us", type=float, required=True, help="processor time of the node per operation (bench throughput)")
    add("--server-us", type=float, required=True, help="processor time of the server per operation (bench throughput)")
    add("--transaction-us", type=float, default=300.0, help="processor time of the server per transaction (300)")
    add("--round-trips", type=float, required=True, help="round trips of a transaction (bench growth)")
    add("--round-trip-us", type=float, default=200.0, help="network there and back (200)")
    add("--flush-us", type=float, required=True, help="time of one flush of the log: a bare commit (bench commits)")
    add("--transactions", type=int, default=2, help="transactions of an operation, one after another (2)")
    add("--callers", type=int, default=256, help="callers of each node (256)")
    add("--cores", type=int, default=8, help="processors of the server (8)")
    add("--operations", type=int, default=50_000, help="how many operations to simulate (50000)")
    add("--nodes", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="for so many nodes (1 2 4 8 16)")
    return parser


if __name__ == "__main__":
    main()
