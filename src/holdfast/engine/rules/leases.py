"""Who may run an execution: news, grants, releases, reclaims.

An execution has news when it has a ready row. A ready row without a worker is up for claim; with one, that session
holds the lease, and every commit must show the token of the grant.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.contract.workers import LostTurn
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import StaleClaim
from holdfast.model.executions import OPEN, OPEN_STATES, Execution, Ready, State, StuckReason
from holdfast.model.values import MICRO, Token

NONCE_MASK = (1 << 62) - 1
LONGEST_BACK_OFF_S = 60.0


def wake(ws: Workspace, execution: Execution) -> None:
    """The execution has got an event its program should see."""
    ready = execution.ready
    if ready is None:
        execution.ready = Ready(since_at=ws.now)
        session = ws.place.for_turn(execution)
        if session is None:
            ws.touch_ready(execution)
        else:
            grant(ws, execution, session)
    elif ready.worker is not None:
        if ws.place.is_local(ready.worker):
            ws.told[execution.id] = execution
        elif not ready.news:
            ready.news = True
            ws.touch_ready(execution)


def grant(ws: Workspace, execution: Execution, session: str) -> None:
    """Give the lease to a session: a new token, so that whoever held it before is refused from now on."""
    ready = execution.ready
    assert ready is not None, "only an execution with news can be leased"
    ready.worker = session
    ready.news = False
    ready.not_before_at = 0
    ready.avoid_build = None
    if execution.crashes and execution.crashes >= ws.config.suspect_from:
        # Tells which of several was taken last, and sends it to the end of the line if its worker is lost once more.
        ready.since_at = ws.now
    if execution.state is not OPEN:
        execution.state = OPEN
        ws.turn(execution)
    new_token(ws, execution)
    ws.touch_ready(execution)
    ws.granted[execution.id] = execution


def new_token(ws: Workspace, execution: Execution) -> None:
    execution.epoch += 1
    execution.nonce = ws.entropy() & NONCE_MASK
    ws.touch(execution)


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


def give_up_slot(ws: Workspace, execution_id: str) -> None:
    """A report on a turn was refused. If its lease is over, its session can run something else, whoever ended that."""
    execution = ws.loaded.executions.get(execution_id)
    ready = execution.ready if execution is not None else None
    ws.place.turn_lost(execution_id, ready.worker if ready is not None else None)


def check_here(ws: Workspace, execution: Execution, session: str) -> None:
    """The session that holds it is one of this process. Those that were closed because the database has gone back hold
    their leases for a moment longer, and what they report was made from what is not there any more."""
    if not ws.place.is_local(session):
        raise StaleClaim(
            f"the session that holds execution {execution.id} is over; nothing was recorded: drop the cached program",
            execution_id=execution.id,
            epoch=execution.epoch,
        )


def let_go(ws: Workspace, execution: Execution) -> None:
    """The turn is over and nothing is unseen: back to waiting. The execution is known to have changed."""
    ready = execution.ready
    if ready is not None and ready.worker is not None:
        ws.place.turn_done(ready.worker, execution)
    execution.ready = None
    ws.granted.pop(execution.id, None)
    ws.told.pop(execution.id, None)
    ws.touch_ready(execution)


def hand_back(ws: Workspace, execution: Execution, *, delay_s: float = 0.0, avoid_build: str | None = None) -> None:
    """The holder gives up the lease but the execution still has news: somebody else may take it."""
    ready = execution.ready
    assert ready is not None, "only a leased execution can be handed back"
    if ready.worker is not None:
        ws.place.turn_done(ready.worker, execution)
    ws.granted.pop(execution.id, None)
    execution.ready = Ready(
        since_at=ready.since_at,
        not_before_at=ws.now + int(delay_s * MICRO) if delay_s else 0,
        avoid_build=avoid_build,
    )
    new_token(ws, execution)
    ws.touch_ready(execution)
    if delay_s:
        ws.expect(execution.ready.not_before_at)


def offer(ws: Workspace, execution: Execution) -> None:
    """Give an unleased ready execution to a session of this process that can take it now."""
    session = ws.place.for_turn(execution)
    if session is not None:
        grant(ws, execution, session)


def tell_holder(ws: Workspace, execution: Execution) -> None:
    """Let a holder in this process know at once that it has lost the execution."""
    ready = execution.ready
    if ready is not None and ready.worker is not None and ws.place.is_local(ready.worker):
        ws.work.append((ready.worker, LostTurn(execution.id, execution.epoch)))


def park(ws: Workspace, execution: Execution, reason: StuckReason) -> None:
    """Stuck: not failed. Tried again by other code at once, by the same code after a while."""
    execution.state = State.STUCK
    execution.stuck = reason
    ws.turn(execution)
    hand_back(ws, execution, delay_s=ws.config.stuck_retry_s, avoid_build=reason.build or None)


def accused(ws: Workspace, held: Iterable[Execution]) -> set[str]:
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
        if execution.crashes < ws.config.suspect_from:
            found.add(execution.id)
            continue
        other = latest.get(ready.worker)
        if other is None or other.ready is None or other.ready.since_at < ready.since_at:
            latest[ready.worker] = execution
    return found | {execution.id for execution in latest.values()}


def reclaim(ws: Workspace, execution: Execution, *, guilty: bool) -> None:
    """The session that held it is gone. A program that keeps taking its worker down is parked."""
    if not guilty:
        hand_back(ws, execution)
        return
    execution.crashes += 1
    ws.turn(execution)
    if execution.crashes >= ws.config.crash_attempts:
        park(
            ws,
            execution,
            StuckReason(
                code="worker_crashes",
                message=f"its worker was lost {execution.crashes} times while running a turn of it; see that worker's "
                "logs and exit code, then resume it or deploy a fix",
                at=ws.now,
                worker=execution.ready.worker or "" if execution.ready else "",
            ),
        )
        return
    # The first loss is most likely somebody else's fault (a deploy, a kill): no delay. After that, back off.
    if execution.crashes == 1:
        hand_back(ws, execution)
        offer(ws, execution)
    else:
        hand_back(ws, execution, delay_s=min(2.0 ** min(execution.crashes - 1, 10), LONGEST_BACK_OFF_S))
