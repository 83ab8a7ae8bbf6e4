"""A history told line by line: what happened, and in which colour."""

from __future__ import annotations

from holdfast.cli import formatting
from holdfast.cli.formatting import day_time, value
from holdfast.cli.output import Cell
from holdfast.model import events as e

HEADERS = ("#", "TIME", "EVENT", "WHAT")
_QUIET = "dim"


class HistoryText:
    """Tells the events of one execution in order; remembers which number was which task, timer, child and wait."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, int], str] = {}

    def row(self, event: e.HistoryEvent) -> tuple[Cell, ...]:
        what = self.what(event.body)
        name = event.type
        return Cell(str(event.seq), _QUIET), Cell(day_time(event.at), _QUIET), Cell(name, what.style), what

    def what(self, body: e.EventBody) -> Cell:
        for show in (self._life, self._work, self._outside, self._family, self._calls):
            told = show(body)
            if told is not None:
                return told
        return Cell("", _QUIET)

    def _life(self, body: e.EventBody) -> Cell | None:
        match body:
            case e.WorkflowStarted():
                return Cell(f"{body.kind} version {body.version}, input {value(body.input)}", "blue")
            case e.TurnCompleted():
                took = f" ({formatting.length(body.started_at - body.scheduled_at)} queued)" if body.started_at else ""
                if not body.waiting_for:
                    return Cell(f"turn recorded{took}", _QUIET)
                return Cell(f"waits for {formatting.waits(body.waiting_for)}{took}", "cyan")
            case e.CancelRequested():
                return Cell(f"asked to cancel: {body.reason or 'no reason given'}", "magenta")
            case e.WorkflowCompleted():
                return Cell(f"result {value(body.result)}", "green")
            case e.WorkflowFailed():
                return Cell(formatting.failure(body.failure), "red")
            case e.WorkflowCancelled():
                return Cell(body.reason or "no reason given", "magenta")
            case e.WorkflowTerminated():
                successor = f"; goes on as {body.successor}" if body.successor else ""
                return Cell(f"{body.reason or 'no reason given'}{successor}", "magenta")
            case e.WorkflowTimedOut():
                return Cell(f"its time was over at {day_time(body.expires_at)}", "red")
            case e.WorkflowContinued():
                return Cell(f"goes on as {body.new_execution_id}, input {value(body.input)}", "blue")
            case e.WorkflowReset():
                kind = "forked" if body.fork else "reset"
                reason = f": {body.reason}" if body.reason else ""
                return Cell(f"{kind} from event {body.event_seq} of {body.from_execution_id}{reason}", "blue")
        return None

    def _work(self, body: e.EventBody) -> Cell | None:
        match body:
            case e.StepCompleted():
                took = formatting.length(body.finished_at - body.started_at)
                return Cell(f"step {body.name!r} in {took}: {value(body.result)}{_tries(body.attempts)}")
            case e.StepFailed():
                return Cell(f"step {body.name!r}: {formatting.failure(body.failure)}{_tries(body.attempts)}", "red")
            case e.TaskScheduled():
                self._names["task", body.task_no] = body.kind
                queue = "" if body.queue == "default" else f" on queue {body.queue!r}"
                return Cell(f"task {body.kind!r} queued{queue}, input {value(body.input)}")
            case e.TaskCompleted():
                return Cell(f"task {self._name('task', body.task_no)}: {value(body.result)}{_tries(body.attempt)}")
            case e.TaskFailed():
                name = self._name("task", body.task_no)
                return Cell(f"task {name}: {formatting.failure(body.failure)}{_tries(body.attempt)}", "red")
            case e.TaskCancelRequested():
                return Cell(f"task {self._name('task', body.task_no)} cancelled", "magenta")
            case e.TimerStarted():
                self._names["timer", body.timer_no] = f"of {day_time(body.fire_at)}"
                return Cell(f"timer set for {day_time(body.fire_at)}", _QUIET)
            case e.TimerFired():
                return Cell(f"timer {self._name('timer', body.timer_no)} fired", "yellow")
            case e.TimerCancelled():
                return Cell(f"timer {self._name('timer', body.timer_no)} not needed any more", _QUIET)
        return None

    def _outside(self, body: e.EventBody) -> Cell | None:
        match body:
            case e.SignalReceived():
                sender = f" from {body.sender}" if body.sender else ""
                return Cell(f"signal {body.signal_name!r}{sender}: {value(body.signal_value)}", "blue")
            case e.PromiseCreated():
                return Cell(f"promise {body.name!r} made", _QUIET)
            case e.PromiseResolved():
                return Cell(f"promise {body.name!r} resolved: {value(body.value)}", "blue")
            case e.PromiseRejected():
                return Cell(f"promise {body.name!r} rejected: {formatting.failure(body.failure)}", "red")
            case e.PromiseTimedOut():
                return Cell(f"promise {body.name!r} was not settled in time", "yellow")
            case e.PromiseCancelled():
                return Cell(f"promise {body.name!r} not needed any more", _QUIET)
            case e.WaitStarted():
                self._names["wait", body.wait_no] = f"for {body.kind} {body.key!r}"
                where = f" where {body.where}" if body.where else ""
                return Cell(f"wait for {body.kind} {body.key!r}{where}", _QUIET)
            case e.WaitCancelled():
                return Cell(f"wait {self._name('wait', body.wait_no)} not needed any more", _QUIET)
            case e.EventReceived():
                kind = "event" if body.correlation is None else "message"
                return Cell(f"{kind} {body.key!r} (number {body.event_id}): {value(body.data)}", "blue")
            case e.BroadcastReceived():
                return Cell(f"broadcast {body.name!r}", "blue")
            case e.EventPublished():
                return Cell(f"published {body.key!r} as number {body.event_id}: {value(body.data)}")
            case e.BroadcastThrown():
                return Cell(f"broadcast {body.name!r} thrown")
        return None

    def _family(self, body: e.EventBody) -> Cell | None:
        match body:
            case e.ChildStarted():
                self._names["child", body.child_no] = repr(body.kind)
                return Cell(f"child {body.kind!r} as {body.child_execution_id}, input {value(body.input)}")
            case e.ChildCompleted():
                return Cell(f"child {self._name('child', body.child_no)}: {value(body.result)}")
            case e.ChildFailed():
                name = self._name("child", body.child_no)
                return Cell(f"child {name} {body.status.replace('_', ' ')}: {formatting.failure(body.failure)}", "red")
            case e.ChildCancelRequested():
                return Cell(f"child {self._name('child', body.child_no)} asked to cancel", "magenta")
            case e.ExternalSignalInitiated():
                return Cell(f"signal {body.signal_name!r} to {body.target}: {value(body.signal_value)}")
            case e.ExternalSignalDelivered():
                return Cell(f"delivered to {body.target_execution_id}", _QUIET)
            case e.ExternalSignalFailed():
                return Cell(formatting.failure(body.failure), "red")
        return None

    def _calls(self, body: e.EventBody) -> Cell | None:
        match body:
            case e.UpdateRequested():
                return Cell(f"update {body.update_name!r} ({body.update_id}): {value(body.input)}", "blue")
            case e.UpdateAccepted():
                return Cell(f"update {body.update_id}", _QUIET)
            case e.UpdateCompleted():
                return Cell(f"update {body.update_id}: {value(body.result)}")
            case e.UpdateRejected() | e.UpdateFailed():
                return Cell(f"update {body.update_id}: {formatting.failure(body.failure)}", "red")
            case e.StateChanged():
                told = [f"{key} = {value(found, 40)}" for key, found in body.values.items()]
                return Cell(", ".join([*told, *(f"{key} removed" for key in body.removed)]), _QUIET)
            case e.MetadataChanged():
                told = [f"{key} = {found}" for key, found in body.values.items()]
                return Cell(", ".join([*told, *(f"{key} removed" for key in body.removed)]), _QUIET)
            case e.PatchMarked():
                return Cell(f"patch {body.patch_id!r}", _QUIET)
        return None

    def _name(self, kind: str, number: int) -> str:
        """A history that is told from its middle on has numbers without a beginning."""
        name = self._names.get((kind, number))
        return f"number {number}" if name is None else (repr(name) if kind == "task" else name)


def _tries(attempts: int) -> str:
    return f" (attempt {attempts})" if attempts > 1 else ""
