"""The account of callers: what they were told, held against what the histories say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from verification.chaos.books import Called
from verification.chaos.caller import digest
from verification.chaos.run import Run
from verification.invariants import Record, Violation


def new_signals(record: Record) -> Iterator[tuple[HistoryEvent, e.SignalReceived]]:
    """Those that came to this run, not those the run before left."""
    for event in record.history:
        if isinstance(event.body, e.SignalReceived) and event.body.carried_from is None:
            yield event, event.body


def signals(run: Run) -> Iterator[Violation]:
    """An accepted signal was received once, where the answer says; one of unknown fate at most once; else never."""
    places: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for record in run.records:
        for event, body in new_signals(record):
            places[body.request_id or ""].append((record.execution_row.id, event.seq))
    for called in run.books.of("signal", "signal_with_start"):
        found = places.get(called.id, [])
        where = found[0] if found else ("", 0)
        match called.outcome:
            case "ok":
                run.data["I06 signals accepted"] += 1
                if len(found) != 1:
                    yield Violation("I06", *where, f"signal {called.call} was accepted, and is at {found}")
                elif not _is_there(called, where):
                    yield Violation("I06", *where, f"signal {called.call} was answered {called.answers[0]}")
            case "unknown":
                run.data["I07 signals of unknown fate"] += 1
                if len(found) > 1:
                    yield Violation("I07", *where, f"signal {called.call} is there more than once: {found}")
            case _:
                run.data["I07 signals refused"] += 1
                if found:
                    yield Violation("I07", *where, f"signal {called.call} was refused ({called.refused}), and is there")


def _is_there(called: Called, where: tuple[str, int]) -> bool:
    answer = called.answers[0]
    return bool(
        answer["signal_event_sequence"] == where[1] and answer.get("workflow_execution_id", where[0]) == where[0]
    )


def order(chain: Sequence[Record], run: Run) -> Iterator[Violation]:
    """What was answered before another was sent comes before it."""
    by_name: dict[str, list[Called]] = defaultdict(list)
    for record in chain:
        for _, body in new_signals(record):
            if called := run.books.calls.get(body.request_id or ""):
                by_name[called.call["name"]].append(called)
    for calls in by_name.values():
        latest = calls[0]
        for called in calls:
            if called.answered_at and called.answered_at < latest.invoked_at:
                yield Violation("I08", chain[-1].execution_row.id, 0, f"{latest.id} overtook {called.id}")
            run.data["I08 pairs in order"] += 0 < latest.answered_at < called.invoked_at
            latest = max(latest, called, key=lambda each: each.invoked_at)


def consumed(chain: Sequence[Record], run: Run) -> Iterator[Violation]:
    """The k-th that a program takes of a name is the k-th it was sent; the others are dead letters."""
    key, kind = chain[-1].execution_row.id, chain[-1].execution_row.kind
    end = chain[-1].history[-1].body
    if not isinstance(end, e.WorkflowCompleted) or kind not in {"bag", "plan"}:
        return
    result = msgspec.json.decode(end.result)
    taken: dict[str, list[str]] = defaultdict(list)
    if kind == "bag":
        taken["item"] = result
    else:
        for entry in result:
            if entry[0] == "got":
                taken[entry[1]].append(entry[2])
    came: dict[str, list[str]] = defaultdict(list)
    for record in chain:
        for _, body in new_signals(record):
            came[body.signal_name].append(msgspec.json.decode(body.signal_value))
    buried = Counter(letter.signal_name for letter in run.dead if letter.execution_id == key)
    for name in taken.keys() | came.keys():
        run.data["I09 signals taken"] += len(taken[name])
        if taken[name] != came[name][: len(taken[name])]:
            yield Violation("I09", key, 0, f"{name}: took {taken[name]} of {came[name]}")
        left = len(came[name]) - len(taken[name])
        if left != buried[name]:
            yield Violation("I06", key, 0, f"{name}: {left} signals were not taken, {buried[name]} are dead letters")


def starts(run: Run) -> Iterator[Violation]:
    """One run per request, the one that the answer names."""
    by_id = {record.execution_row.id: record for record in run.records}
    begun: dict[str, list[str]] = defaultdict(list)
    for record in run.records:
        started = record.history[0].body
        if isinstance(started, e.WorkflowStarted) and started.request_id is not None:
            begun[started.request_id].append(record.execution_row.id)
    for called in run.books.of("start", "signal_with_start"):
        found = begun.get(called.id, [])
        if called.outcome == "refused" and found:
            yield Violation("I17", found[0], 1, f"{called.call['id']} was refused ({called.refused}), and began this")
        if len(found) > 1:
            yield Violation("I17", found[1], 1, f"{called.call['id']} has begun {found}")
        if called.outcome != "ok":
            continue
        run.data["I17 starts answered"] += 1
        key, created = called.answers[0]["workflow_execution_id"], called.answers[0]["workflow_created"]
        if key not in by_id or by_id[key].execution_row.workflow_id != called.call["workflow_id"]:
            yield Violation("I17", key, 0, f"{called.call['id']} was answered with it: not there, or another's")
        if found != ([key] if created else []):
            yield Violation("I17", key, 0, f"{called.call['id']} was answered with it ({created=}), and began {found}")


def overlaps(run: Run) -> Iterator[Violation]:
    """A workflow id has never had two open runs at one time. Commits tell: an event's time is older than its locks."""
    last: dict[str, Record] = {}
    for record in sorted(run.records, key=lambda record: run.committed[record.execution_row.id]):
        before = last.get(record.execution_row.workflow_id)
        if before is not None:
            run.data["I17 runs after another"] += 1
            if (
                before.execution_row.is_open
                or run.committed[record.execution_row.id][0] < run.committed[before.execution_row.id][1]
            ):
                open_ = before.execution_row.id
                text = f"began while {open_}, another run of {record.execution_row.workflow_id!r}, was open"
                yield Violation("I17", record.execution_row.id, 1, text)
        last[record.execution_row.workflow_id] = record


def ends(run: Run) -> Iterator[Violation]:
    """Whoever was told that he has cancelled or terminated something has."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for record in run.records:
        for event in record.history:
            if isinstance(event.body, e.CancelRequested | e.WorkflowTerminated):
                reasons[event.body.reason].append(record.execution_row.id)
    for called in run.books.of("cancel", "terminate"):
        found = reasons.get(called.id, [])
        run.data["F27 cancelled or terminated"] += bool(found)
        if called.outcome == "ok" and called.answers[0]["changed"] and len(found) != 1:
            yield Violation("F27", called.call["execution_id"], 0, f"{called.call} was accepted, and is at {found}")
        elif len(found) > 1 or (called.outcome == "refused" and found):
            yield Violation("F27", found[0], 0, f"{called.call} ({called.outcome}) is at {found}")


def promises(run: Run) -> Iterator[Violation]:
    """A promise is settled once, and everybody is told the same: who settles it, its history, and its program."""
    told: dict[str, list[str]] = defaultdict(list)
    firsts: Counter[str] = Counter()
    for called in run.books.of("settle", "reject", "settle one"):
        if called.answers:
            answer = called.answers[0]
            told[answer["promise_id"]].append(_settlement(answer))
            firsts[answer["promise_id"]] += not answer["already_resolved"]
    for record in run.records:
        for event in record.history:
            match event.body:
                case e.PromiseResolved(name=name, value=value):
                    told[f"{record.execution_row.id}:{name}"].append(f"RESOLVED {msgspec.json.decode(value)}")
                case e.PromiseRejected(name=name, failure=failure):
                    told[f"{record.execution_row.id}:{name}"].append(f"REJECTED {failure.message}")
                case e.PromiseTimedOut(name=name):
                    told[f"{record.execution_row.id}:{name}"].append("TIMED_OUT")
                case e.WorkflowCompleted(result=result) if _asked(record) == "promise":
                    told[f"{record.execution_row.id}:p"].append(" ".join(msgspec.json.decode(result)))
    for key, values in told.items():
        run.data["I14 told by two"] += len(values) > 1
        if len(set(values)) > 1 or firsts[key] > 1:
            text = f"promise {key} was settled {firsts[key]} times, to {sorted(set(values))}"
            yield Violation("I14", key.partition(":")[0], 0, text)


def _asked(record: Record) -> str:
    started = record.history[0].body
    if record.execution_row.kind != "errand" or not isinstance(started, e.WorkflowStarted):
        return ""
    return str(msgspec.json.decode(started.input)["what"])


def _settlement(answer: Mapping[str, Any]) -> str:
    match answer["state"]:
        case "RESOLVED":
            return f"RESOLVED {answer['value']}"
        case "REJECTED":
            return f"REJECTED {answer['error']['message']}"
        case state:
            return str(state)


def broadcasts(run: Run) -> Iterator[Violation]:
    """A broadcast reaches as many as it says. Nobody gets one twice by one wait: the histories tell."""
    got: Counter[int] = Counter()
    for record in run.records:
        got.update(event.body.broadcast_id for event in record.history if isinstance(event.body, e.BroadcastReceived))
    for called in run.books.of("broadcast"):
        for answer in called.answers:
            run.data["I26 broadcasts that reached somebody"] += answer["delivered"] > 0
            if got[answer["broadcast_id"]] != answer["delivered"]:
                text = f"{called.id} says {answer['delivered']}; {got[answer['broadcast_id']]} got it"
                yield Violation("I26", "", 0, text)


def same_answers(run: Run) -> Iterator[Violation]:
    """All answers under one key are the same; another call with it is refused."""
    for called in run.books.calls.values():
        told = {_plain(answer) for answer in called.answers}
        run.data["I07 calls of unknown fate"] += called.outcome == "unknown"
        run.data["I23 calls answered twice"] += len(called.answers) > 1
        if called.what not in {"cancel", "terminate", "read"} and len(told) > 1:
            yield Violation("I23", "", 0, f"{called.call} was answered {sorted(told)}")
        for complaint in called.complaints:
            yield Violation("I23", "", 0, f"{called.call}: {complaint}")


def _plain(answer: Mapping[str, object]) -> str:
    """Without how far a delivery had come."""
    kept = {name: value for name, value in answer.items() if name not in {"delivered", "done"}}
    return msgspec.json.encode(kept, order="deterministic").decode()


def reads(run: Run) -> Iterator[Violation]:
    """What a caller has read is the beginning of what there is."""
    by_id = {record.execution_row.id: record for record in run.records}
    for called in run.books.of("read"):
        for answer in called.answers:
            run.data["I25 reads"] += 1
            record = by_id.get(called.call["execution_id"])
            if record is None or digest(record.history[: answer["events"]]) != answer["digest"]:
                text = f"{called.id} has read {answer['events']} events that are now different"
                yield Violation("I25", called.call["execution_id"], 0, text)
