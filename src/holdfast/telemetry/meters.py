"""Which metrics an engine has: names, words, labels. Whoever counts has a `Meters` and adds to its series.

The names are public: dashboards and alerts are made of them. `docs/how-to/observe.md` lists them all.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.telemetry.registry import SECONDS, SIZES, Number, Registry

STAGES = ("load", "decide", "write")


class Meters:
    """The metrics of one engine. `most_series` bounds the label sets of each."""

    def __init__(self, most_series: int = 200) -> None:
        self.registry = Registry(most_series)
        self._watched: list[tuple[Number, Callable[[], float]]] = []
        self._work()
        self._latencies()
        self._transactions()
        self._state()

    def _work(self) -> None:
        counter = self.registry.counter
        self.started = counter("holdfast_executions_started_total", "Executions begun.").of()
        self.closed = counter("holdfast_executions_closed_total", "Executions that ended, by how.", "status")
        self.turns = counter("holdfast_turns_total", "Turns recorded.").of()
        self.signals = counter("holdfast_signals_total", "Signals received by executions.").of()
        self.tasks = counter("holdfast_tasks_total", "Tasks that ended, by outcome.", "outcome")
        self.attempts = counter("holdfast_task_attempts_total", "Task attempts reported, by outcome.", "outcome")
        self.steps = counter("holdfast_steps_total", "Steps recorded, by outcome.", "outcome")
        self.published = counter("holdfast_events_published_total", "Events published and broadcasts thrown.").of()
        self.timers = counter("holdfast_timers_fired_total", "Timers fired.").of()
        self.events = counter("holdfast_history_events_total", "Events appended to histories, by type.", "type")

    def _latencies(self) -> None:
        histogram = self.registry.histogram
        self.turn_wait = histogram(
            "holdfast_turn_schedule_to_start_seconds", "From news for an execution to its lease.", SECONDS
        ).of()
        self.task_wait = histogram(
            "holdfast_task_schedule_to_start_seconds", "From a task's scheduling to its first lease.", SECONDS
        ).of()
        self.task_run = histogram(
            "holdfast_task_run_seconds", "From the lease of a task's attempt to its report.", SECONDS
        ).of()
        self.step_run = histogram("holdfast_step_run_seconds", "How long steps took, retries included.", SECONDS).of()
        self.reaction = histogram(
            "holdfast_signal_reaction_seconds", "From a signal to the record of the turn that saw it.", SECONDS
        ).of()
        self.lifetime = histogram(
            "holdfast_execution_seconds", "From the start of an execution to its end.", (*SECONDS, 3600.0, 86400.0)
        ).of()

    def _transactions(self) -> None:
        counter, histogram = self.registry.counter, self.registry.histogram
        self.transactions = counter("holdfast_transactions_total", "Transactions committed.").of()
        self.retried = counter(
            "holdfast_transactions_retried_total", "Transactions begun again: raced, busy, deadlock, connection lost."
        ).of()
        self.split = counter("holdfast_transactions_split_total", "Transactions split to find the guilty part.").of()
        self.failed = counter("holdfast_transactions_failed_total", "Transactions given up, by error code.", "code")
        self.commit_in_doubt = counter(
            "holdfast_transactions_doubted_total", "Commits of which nobody knew for a while whether they stood."
        ).of()
        stages = histogram("holdfast_transaction_seconds", "What a transaction's time went to.", SECONDS, "stage")
        self.load, self.decide, self.write = (stages.of(stage) for stage in STAGES)
        self.batch = histogram("holdfast_transaction_operations", "Operations in one transaction.", SIZES).of()
        self.operations = counter("holdfast_operations_total", "Operations decided.", "operation")
        self.refused = counter(
            "holdfast_operations_refused_total", "Operations refused, by error code; stale_claim and so on.", "code"
        )
        self.sessions_expired = counter(
            "holdfast_sessions_expired_total", "Worker sessions that stopped reporting."
        ).of()
        self.leases_lost = counter(
            "holdfast_leases_lost_total", "Turns and task attempts taken back from expired sessions.", "of"
        )
        for of in ("turn", "task"):
            self.leases_lost.of(of)
        self.timed_out = counter("holdfast_tasks_timed_out_total", "Task attempts that passed a limit.").of()

    def _state(self) -> None:
        gauge = self.registry.gauge
        self.depth = gauge("holdfast_queue_depth", "What waits for a worker now.", "org", "queue", "of")
        self.age = gauge("holdfast_queue_age_seconds", "How long the first of it has waited.", "org", "queue", "of")
        self.stuck = gauge("holdfast_executions_stuck", "Executions parked as stuck.", "org")

    def watch(self, name: str, words: str, read: Callable[[], float]) -> None:
        """A gauge whose value is asked for at every scrape."""
        self._watched.append((self.registry.gauge(name, words).of(), read))

    def render(self, org: str | None = None) -> str:
        """All of it as Prometheus reads it; with an org, without the queues of others."""
        for series, read in self._watched:
            series.value = read()
        return self.registry.render(org)
