"""Who may run an execution: news, grants, releases, reclaims.

An execution has news when it has a ready row. A ready row without a worker is up for claim; with one, that session
holds the lease, and every commit must show the token of the grant.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.contract.workers import LostTurn
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import StaleClaim
from holdfast.model.executions import OPEN, OPEN_STATES, Execution, Ready, State, StuckReason
from holdfast.model.values import MICRO, Token

NONCE_MASK = (1 << 62) - 1
LONGEST_BACK_OFF_S = 60.0


def wake(uow: UnitOfWork, execution: Execution) -> None:
    """The execution has got an event its program should see."""
    ready = execution.ready
    if ready is None:
        execution.ready = Ready(since_at=uow.now)
        session = uow.place.for_turn(execution)
        if session is None:
            uow.touch_ready(execution)
        else:
            grant(uow, execution, session)
    elif ready.worker is not None:
        if uow.place.is_local(ready.worker):
            uow.notified[execution.id] = execution
        elif not ready.pending_events:
            ready.pending_events = True
            uow.touch_ready(execution)


def grant(uow: UnitOfWork, execution: Execution, session: str) -> None:
    """Give the lease to a session: a new token, so that whoever held it before is refused from now on."""
    ready = execution.ready
    assert ready is not None, "only an execution with news can be leased"
    ready.worker = session
    ready.pending_events = False
    ready.not_before_at = 0
    ready.avoid_build = None
    if execution.crashes and execution.crashes >= uow.config.suspect_from:
        # Tells which of several was taken last, and sends it to the end of the line if its worker is lost once more.
        ready.since_at = uow.now
    if execution.state is not OPEN:
        execution.state = OPEN
        uow.mark_state_changed(execution)
    new_token(uow, execution)
    uow.touch_ready(execution)
    uow.granted[execution.id] = execution


def new_token(uow: UnitOfWork, execution: Execution) -> None:
    execution.epoch += 1
    execution.nonce = uow.entropy() & NONCE_MASK
    uow.touch(execution)


def check_holder(execution: Execution, token: Token) -> str:
    """The session that holds the execution, if `token` is that of its lease."""
    ready = execution.ready
    if (
        ready is None
        or ready.worker is None
        or execution.epoch != token.epoch
        or execution.nonce != token.nonce
        or execution.state not in OPEN_STATES
    ):
        raise StaleClaim(
            f"the lease on execution {execution.id} with epoch {token.epoch} is over (now at {execution.epoch}, "
            f"{execution.status}); nothing was recorded: drop the cached program",
            execution_id=execution.id,
            epoch=token.epoch,
        )
    return ready.worker


def give_up_slot(uow: UnitOfWork, execution_id: str) -> None:
    """A report on a turn was refused. If its lease is over, its session can run something else, whoever ended that."""
    execution = uow.loaded.executions.get(execution_id)
    ready = execution.ready if execution is not None else None
    uow.place.turn_lost(execution_id, ready.worker if ready is not None else None)


def check_here(uow: UnitOfWork, execution: Execution, session: str) -> None:
    """The session that holds it is one of this process. Those that were closed because the database has gone back hold
    their leases for a moment longer, and what they report was made from what is not there any more."""
    if not uow.place.is_local(session):
        raise StaleClaim(
            f"the session that holds execution {execution.id} is over; nothing was recorded: drop the cached program",
            execution_id=execution.id,
            epoch=execution.epoch,
        )


def release_lease(uow: UnitOfWork, execution: Execution) -> None:
    """The turn is over and nothing is unseen: back to waiting. The execution is known to have changed."""
    ready = execution.ready
    if ready is not None and ready.worker is not None:
        uow.place.turn_done(ready.worker, execution)
    execution.ready = None
    uow.granted.pop(execution.id, None)
    uow.notified.pop(execution.id, None)
    uow.touch_ready(execution)


def hand_back(uow: UnitOfWork, execution: Execution, *, delay_s: float = 0.0, avoid_build: str | None = None) -> None:
    """The holder gives up the lease but the execution still has news: somebody else may take it."""
    ready = execution.ready
    assert ready is not None, "only a leased execution can be handed back"
    if ready.worker is not None:
        uow.place.turn_done(ready.worker, execution)
    uow.granted.pop(execution.id, None)
    execution.ready = Ready(
        since_at=ready.since_at,
        not_before_at=uow.now + int(delay_s * MICRO) if delay_s else 0,
        avoid_build=avoid_build,
    )
    new_token(uow, execution)
    uow.touch_ready(execution)
    if delay_s:
        uow.note_due(execution.ready.not_before_at)


def offer(uow: UnitOfWork, execution: Execution) -> None:
    """Give an unleased ready execution to a session of this process that can take it now."""
    session = uow.place.for_turn(execution)
    if session is not None:
        grant(uow, execution, session)


def notify_holder(uow: UnitOfWork, execution: Execution) -> None:
    """Let a holder in this process know at once that it has lost the execution."""
    ready = execution.ready
    if ready is not None and ready.worker is not None and uow.place.is_local(ready.worker):
        uow.work.append((ready.worker, LostTurn(execution.id, execution.epoch)))


def park(uow: UnitOfWork, execution: Execution, reason: StuckReason) -> None:
    """Stuck: not failed. Tried again by other code at once, by the same code after a while."""
    execution.state = State.STUCK
    execution.stuck = reason
    uow.mark_state_changed(execution)
    hand_back(uow, execution, delay_s=uow.config.stuck_retry_s, avoid_build=reason.build or None)


def blamed(uow: UnitOfWork, held: Iterable[Execution]) -> set[str]:
    """Those a loss counts against, among all that the lost sessions held.

    All but suspects that had outlived a heartbeat, and so had got company: of several in one session, the one taken
    last is to blame. Each loss counts against somebody, so whatever keeps taking workers down is found in the end.
    """
    found: set[str] = set()
    latest: dict[str, Execution] = {}
    for execution in held:
        ready = execution.ready
        if ready is None or ready.worker is None:
            continue
        if execution.crashes < uow.config.suspect_from:
            found.add(execution.id)
            continue
        other = latest.get(ready.worker)
        if other is None or other.ready is None or other.ready.since_at < ready.since_at:
            latest[ready.worker] = execution
    return found | {execution.id for execution in latest.values()}


def reclaim(uow: UnitOfWork, execution: Execution, *, counts_as_crash: bool) -> None:
    """The session that held it is gone. A program that keeps taking its worker down is parked."""
    if not counts_as_crash:
        hand_back(uow, execution)
        return
    execution.crashes += 1
    uow.mark_state_changed(execution)
    if execution.crashes >= uow.config.crash_attempts:
        park(
            uow,
            execution,
            StuckReason(
                code="worker_crashes",
                message=f"its worker was lost {execution.crashes} times while running a turn of it; see that worker's "
                "logs and exit code, then resume it or deploy a fix",
                at=uow.now,
                worker=execution.ready.worker or "" if execution.ready else "",
            ),
        )
        return
    # The first loss is most likely somebody else's fault (a deploy, a kill): no delay. After that, back off.
    if execution.crashes == 1:
        hand_back(uow, execution)
        offer(uow, execution)
    else:
        hand_back(uow, execution, delay_s=min(2.0 ** min(execution.crashes - 1, 10), LONGEST_BACK_OFF_S))
