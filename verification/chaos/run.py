"""What is judged of a chaos run, and how much there was for each invariant: a check without data shows nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from holdfast.model import events as e
from holdfast.model.executions import DeadLetter, State
from verification.chaos.app import LEASE_S
from verification.chaos.books import Body, Books
from verification.chaos.metronome import Stall, stalled_us
from verification.chaos.nemesis import Hit
from verification.invariants import Record, Violation

# How long after a fault something may still be its doing: leases have passed, connections are made again.
AFTER_S: Final = LEASE_S + 5.0
AFTER_US: Final = int(AFTER_S * 1e6)
# Somebody who has not come to run for so long may have lost his lease, and nobody is to blame.
STALLED_US: Final = int(LEASE_S / 3 * 1e6)

NEEDED: Final = (
    "I01 events",
    "I01 events read before",
    "I03 runs with a request id",
    "I04 completed",
    "I04 failed",
    "I04 cancelled",
    "I04 terminated",
    "I04 timed_out",
    "I04 continued",
    "I05 steps in time",
    "I06 signals accepted",
    "I06 signals carried over",
    "I06 dead letters",
    "I07 signals refused",
    "I07 calls of unknown fate",
    "I08 pairs in order",
    "I09 signals taken",
    "I10 outcomes of tasks",
    "I10 outcomes of steps",
    "I10 outcomes of waits",
    "I11 results",
    "I11 attempts after a failed one",
    "I11 attempts after a lost one",
    "I12 steps in calm",
    "I12 steps run again",
    "I13 timers once whole",
    "I13 time limits once whole",
    "I14 resolved",
    "I14 rejected",
    "I14 timed out",
    "I14 told by two",
    "I15 children completed",
    "I15 children failed",
    "I16 open runs at rest",
    "I16 open runs in between",
    "I16 rows due once whole",
    "I17 starts answered",
    "I17 runs after another",
    "I17 looks at open runs",
    "I18 replays",
    "I19 closed runs",
    "I23 calls answered twice",
    "I25 reads",
    "I26 broadcasts that reached somebody",
)


@dataclass(frozen=True)
class Run:
    """What is judged. `sent_away`: processes that may have handed back attempts they had begun.

    `whole_at` and `whole_since` are one moment, by the machine's clock and by the database's: from then on nothing was
    disturbed, and nothing was locked by anybody who was gone. Whatever was due could be done, except while the machine
    was busy with itself (`stalls`, by the database's clock). `before`: what was read in the middle of it all;
    `committed`: when the first and the last event of each execution were.
    """

    records: Sequence[Record]
    before: Sequence[Sequence[Record]]
    committed: Mapping[str, tuple[int, int]]
    dead: Sequence[DeadLetter]
    books: Books
    hits: Sequence[Hit]
    sent_away: AbstractSet[str]
    whole_at: int
    whole_since: int
    stalls: list[Stall]
    data: Counter[str] = field(default_factory=Counter)

    def was_hit(self, first: Body, then: Body) -> bool:
        """Whether a fault, or a machine that was busy with itself, may have kept the first from being recorded."""
        name = first.process.partition("-")[0]
        if any(
            hit.at < then.began_at
            and first.began_at < hit.until + AFTER_US
            and (hit.names is None or name in hit.names)
            for hit in self.hits
        ):
            return True
        span = first.began_at - int(LEASE_S * 1e6), then.began_at
        ahead = self.whole_since - self.whole_at
        return (
            stalled_us(self.books.stalls[first.process], *span) > STALLED_US
            or stalled_us(self.stalls, span[0] + ahead, span[1] + ahead) > STALLED_US
        )

    def is_calm(self, at: int) -> bool:
        return at > self.whole_at + AFTER_US


def count(run: Run) -> None:
    """What there was for those invariants that need nothing but histories."""
    data, kinds = run.data, Counter(type(event.body) for record in run.records for event in record.history)
    data["I01 events"] += sum(kinds.values())
    data["I01 events read before"] += sum(len(record.history) for read in run.before for record in read)
    data["I05 steps in time"] += sum(len(record.history) - 1 for record in run.records)
    data["I06 dead letters"] += len(run.dead)
    data["I10 outcomes of tasks"] += kinds[e.TaskCompleted] + kinds[e.TaskFailed]
    data["I10 outcomes of steps"] += kinds[e.StepCompleted] + kinds[e.StepFailed]
    data["I10 outcomes of waits"] += kinds[e.EventReceived] + kinds[e.BroadcastReceived]
    data["I14 resolved"] += kinds[e.PromiseResolved]
    data["I14 rejected"] += kinds[e.PromiseRejected]
    data["I14 timed out"] += kinds[e.PromiseTimedOut]
    data["I15 children completed"] += kinds[e.ChildCompleted]
    data["I15 children failed"] += kinds[e.ChildFailed]
    for record in run.records:
        if record.execution_row.state not in {State.OPEN, State.STUCK}:
            data[f"I04 {record.execution_row.state.value.lower()}"] += 1
            data["I19 closed runs"] += 1
        for event in record.history:
            if isinstance(event.body, e.WorkflowStarted):
                data["I03 runs with a request id"] += event.body.request_id is not None
            elif isinstance(event.body, e.SignalReceived):
                data["I06 signals carried over"] += event.body.carried_from is not None


def missing(data: Counter[str]) -> list[Violation]:
    """Nothing was wrong, because there was nothing."""
    return [Violation("DATA", "", 0, f"nothing to judge: {name}") for name in NEEDED if not data[name]]
