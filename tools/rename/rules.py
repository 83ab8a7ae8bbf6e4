"""Which identifiers change. See words.py for the modes."""

SKIP: set[str] = {"tests/faults/versions_app.py"}
SRC, ENG, STO, PG, SRV, CLI, CLIENT, WRK = (
    "src/holdfast/*", "src/holdfast/engine/*", "src/holdfast/store/*", "src/holdfast/store/postgres/*", "src/holdfast/server/*",
    "src/holdfast/cli/*", "src/holdfast/client/*", "src/holdfast/worker/*",
)
VER, UENG, TSTO, MUT = "verification/*", "tests/unit/engine/*", "tests/stores/*", "verification/mutants.py"
MEM, VST, SIM = "verification/memory/*", "verification/stores/*", "verification/simulation/*"
REPLAY, FRONT = "src/holdfast/replay/*", "src/holdfast/frontends/*"
ARCH = "docs/*"

RULES: list[tuple] = []


def W(**names: str) -> None:
    RULES.extend((old, new, "word", None) for old, new in names.items())


def C(where, **names: str) -> None:
    RULES.extend((old, new, "code", where) for old, new in names.items())


def A(where, **names: str) -> None:
    RULES.extend((old, new, "attr", where) for old, new in names.items())


def X(where, *pairs: tuple[str, str]) -> None:
    RULES.extend((old, new, "regex", where) for old, new in pairs)


# --- everywhere: no English words -----------------------------------------------------------------------------------
W(
    in_company="has_peers", _in_company_until="_has_peers_until", _company_until="_peers_until", _COMPANY_S="_PEERS_S",
    plan_refills="plan_backfills", _refills="_backfills", FREES="RELEASES_SLOT", went_back="data_loss_detected",
    run_afterwards="run_deferred", read_past="read_reset_source", begin_asked="start_requested", add_head="insert_execution",
    end_from_outside="close_externally", tell_holder="notify_holder", tell_parent="notify_parent", demand_of="required_equality_of",
    question_of="look_back_query_of", sending_of="publication_of", plan_sending="plan_publication", go_on_delivering="continue_deliveries",
    _decide_fates="_apply_parent_close_policy", check_fates="check_parent_close", exhumed_events="replayed_dead_events",
    look_around="poll_changes", _look_around="_poll_changes", tell_due="notify_due", _pass_on_news="_deliver_pending_events",
    has_news="has_pending_events", news_for="pending_events_for", with_news="with_pending_events", TaskNewsKind="TaskFeedItemKind",
    TaskNews="TaskFeedItem", BuryUnread="DeadLetterUnread", RecordAct="RecordAuditEntry", JoinedOperation="JoinedOperation",
    SignalWithStartWorkflow="SignalWithStartWorkflow", begin_later="start_later",
    _pass_on_last_words="_flush_output", LAST_WORDS_S="FINAL_FLUSH_S", BEATS_BY_ITSELF="SENDS_HEARTBEATS", turn_begins="turn_started", turn_ends="turn_ended",
    on_said="on_output", said_in_s="output_due_in_s", _said_in_s="_output_due_in_s", _keep_beating="_run", _beat_on="_run_until_stopped",
    BodyThreads="TaskThreads", Questioned="QueryableProgram", VirtualHost="VirtualRuntime", _RemoteHost="_RemoteRuntime",
    _lookers="_pending_queries", _let_look="_serve_queries", _turn_away="_fail_queries", LOOK_ROUNDS="QUERY_ROUNDS", gave_back="turn_released",
    can_be_called="has_handlers", unhear="unlisten",
    RestDoor="RestApp", WorkerDoor="WorkerService", http_door="rest_server", grpc_door="grpc_server", open_door="open_api",
    KeyMade="CreatedKey", MessageSent="SendResult", Redelivered="RedeliverResult",
    PauseState="PauseInfo", QueueState="QueueInfo", WorkerState="WorkerInfo",
    WorkflowView="ExecutionInfo", DeadEventView="DeadEventInfo", view_of_task="task_info_of",
    start_up="open", LookingEngine="ReadOnlyEngine",
    hint_poll_s="poll_min_s", poll_s="poll_max_s", hints_healthy="notifications_healthy", connect_hints="connect_notifications",
    head_to_row="execution_to_row", row_to_head="row_to_execution", row_to_bare_head="row_to_bare_execution", turn_to_row="state_to_row",
    HEAD_COLUMNS="EXECUTION_COLUMNS", _HEAD_WIDTH="_EXECUTION_WIDTH", _GO_ON="_ADVANCE", TakeHeads="LockExecutions", _take_heads="_lock_executions",
    _with_heads="_with_executions", _take_bereaved="_take_orphans", _BEREAVED="_ORPHANS", _BURY="_DEAD_LETTER", _EXHUME="_REPLAY_DEAD",
    AsyncpgVisit="AsyncpgExternal", PsycopgVisit="PsycopgExternal", AsyncPsycopgVisit="AsyncPsycopgExternal",
    check_standbys="check_durability", Timelines="FailoverDetector", _timelines="_failover",
    ShortForms="EngineShortcuts", sync_faces="sync_facades", face_class="facade_class", faces_in="facades_in", short_forms="shortcuts",
    run_on_keys="run_on_keys", _pulse="_heartbeater", feel_pulse="watch_stalls",
    _decide_fate="_decide_fate", fates_swapped="parent_close_swapped", _FATES="_PARENT_CLOSE",
    unread_not_buried="unread_not_dead_lettered", _unbury="_take_back_dead_letters", _settle_letters="_settle_dead_letters",
    is_opened_by="matches",
)

# --- engine ---------------------------------------------------------------------------------------------------------
PY = ["*.py", "*.md", "!bench/figures.py"]
C(PY, Desk="Dispatcher", desk="dispatcher", _desk="_dispatcher", desks="dispatching", Tally="SlotReservations", tally="reservations", _tally="_reservations",
  Refill="Backfill", refill="backfill", refills="backfills", Leftovers="PostCommitQueue", Portions="Chunks",
  Audience="CommitListener", PATIENT="RETRY_ON_OUTAGE", Workspace="UnitOfWork", Pausing="PauseSync", Deleting="OrgDeletion",
  Joins="CallerTransactions", Beginning="NewExecution", bereaved="orphans", bereaved_child="orphaned_child", accused="blamed")
C([ENG, UENG, VER, "tests/*", "src/holdfast/testing/*", ARCH], ws="uow")
GC = [f"{ENG}", UENG, MUT, SIM, "tests/unit/telemetry/*", "tests/replay/*", "tests/unit/client/*", "tests/unit/server/*", "src/holdfast/testing/*", "tests/faults/*", ARCH]
X([ENG, UENG, "tests/conftest.py", "tests/faults/*", "tests/unit/*", "verification/*", "bench/*", "src/holdfast/assembly.py", "src/holdfast/testing/*"],
  (r"\b(engine|_engine|self|_local|local)\.outcomes\b(?!\()", r"\1.result_waiters"),
  (r"\b(engine|_engine|_local|local)\.joins\b", r"\1.caller_transactions"),
  (r"\b(engine|_engine|_local|local|self)\.pausing\b", r"\1.pause_sync"),
  (r"\b(engine|_engine|_local|local|self)\.deleting\b", r"\1.org_deletion"))
X(["src/holdfast/engine/facade.py"], (r"\bself\.joins\b", "self.caller_transactions"))
C([ENG, ARCH], Outcomes="ResultWaiters", doubts="peer_writes", _doubts="_peer_writes")
C([UENG, "tests/unit/*", "tests/replay/event_world.py"], Outcomes="ResultWaiters")
A([ENG, UENG, "tests/replay/event_world.py", "tests/unit/*"], doubts="peer_writes", _doubts="_peer_writes")
A(["src/holdfast/engine/result_waiters.py", "src/holdfast/engine/facade.py"], doubt="note_peer_write")
C([f"{ENG}", UENG, "tests/unit/telemetry/*", ARCH], Member="PendingOperation", Act="AuditEntry", Sending="Publication", Round="DeliveryRound", Handed="Delivered",
  Question="LookBackQuery", Tester="PayloadMatcher", Demand="RequiredEquality", Past="ResetSource", Nowhere="NoPlacement")
C([ENG], tester="matcher", sending="publication", questions="look_back_queries", _questions="_look_back_queries", hasty="failing", patient="retrying",
  PATIENT_RETRY_S="OUTAGE_RETRY_S", TELL_EVERY_S="LOG_EVERY_S", _told_at="_logged_at", audience="listener", PORTION="CHUNK", portion="chunk",
  afterwards="deferred", looking_back="deferred_look_backs", guilty="counts_as_crash", fate="parent_close_action", picture="describe_task",
  let_go="release_lease", LEFT_FOR="STICKY_US", LookingBack="LookBackSearch", _leftovers="_post_commit", _lose_patience="_on_delay_over", LOOKED_AT="SCANNED", _look_at="_scan",
  Exhume="ReplayDead", Beat="RecordHeartbeat", Forget="Prune", Bury="DeadLetterUnreadSignals", end_from_outside="close_externally")
C([MUT], fate="parent_close_action", Beat="RecordHeartbeat", let_go="release_lease", bury="dead_letter", bury_unread="dead_letter_unread", hasty="failing")
X([ENG, MUT], (r'"(_?)let_go"', r'"\1release_lease"'), (r'"bury_unread"', '"dead_letter_unread"'), (r'"bury"', '"dead_letter"'), (r'"fate"', '"parent_close_action"'))
C([UENG, "tests/replay/*"], Exhume="ReplayDead", Bury="DeadLetterUnreadSignals", Member="PendingOperation", doubts="peer_writes", Forget="Prune", LEFT_FOR="STICKY_US", TELL_EVERY_S="LOG_EVERY_S", PATIENT_RETRY_S="OUTAGE_RETRY_S", PORTION="CHUNK", let_go="release_lease")
A(["src/holdfast/engine/operation.py", "src/holdfast/engine/tasks/*", "src/holdfast/engine/turns/*", "src/holdfast/engine/group_commit.py", "src/holdfast/engine/instrumentation.py"], undecided="on_refused")
C(["src/holdfast/engine/keys/orgs.py", "src/holdfast/engine/key_facade.py"], Make="AddOrg")
C(["src/holdfast/engine/keys/audit.py", "src/holdfast/engine/key_facade.py"], Record="RecordAudit")
C(["src/holdfast/engine/post_commit.py", "src/holdfast/engine/group_commit.py", "tests/unit/engine/test_post_commit.py", "src/holdfast/engine/instrumentation.py"], do_next="run_next", do_all="run_all", PATIENCE_S="MAX_DELAY_S", _go_on="_schedule", _rest="_cancel_timer", _do_some="_run_some", _do_one="_run_one", soon="run_soon")
A(["src/holdfast/engine/dispatcher.py", "src/holdfast/engine/backfill.py", "src/holdfast/engine/group_commit.py", "src/holdfast/engine/facade.py", "src/holdfast/engine/pause_sync.py", "src/holdfast/engine/queries.py", "src/holdfast/engine/worker_facade.py", "src/holdfast/engine/workers/*", "tests/unit/engine/test_leases.py", "tests/unit/engine/test_affinity.py", "tests/unit/engine/test_pausing.py", "tests/unit/engine/test_queries.py", "tests/unit/engine/test_ghosts.py", "tests/unit/engine/test_lost_slots.py", "docs/architecture.md", "src/holdfast/testing/virtual_engine.py"],
  post="outbox", ordered="paused_by_admin", obey="apply_pauses", leave="sticky_policy", look_again="recheck_store", ran_here="ran_here")
C(["src/holdfast/engine/dispatcher.py"], _ordered="_paused_workers", Leave="StickyPolicy")
A(["src/holdfast/engine/backfill.py"], begin="start")
X(["src/holdfast/engine/group_commit.py"], (r"\b(refill|backfill)\.begin\(", r"\1.start("))
A(["src/holdfast/engine/rules/unit_of_work.py", "src/holdfast/engine/group_commit.py", "src/holdfast/engine/rules/leases.py", "src/holdfast/engine/instrumentation.py"], told="notified")
A(["src/holdfast/engine/rules/unit_of_work.py"], expect="note_due", turn="mark_state_changed")
X([ENG, MUT, UENG], (r"\b(ws|uow)\.expect\(", "uow.note_due("), (r"\b(ws|uow)\.turn\(", "uow.mark_state_changed("), (r"\b(ws|uow)\.told\b", "uow.notified"),
  (r"\b(ws|uow)\.turn\b(?!\()", "uow.mark_state_changed"))
X([MUT], (r'(Workspace|UnitOfWork), "turn"', 'UnitOfWork, "mark_state_changed"'), (r'(Workspace|UnitOfWork), "expect"', 'UnitOfWork, "note_due"'))
C(["src/holdfast/engine/executions/*", "src/holdfast/engine/reset_source.py", "src/holdfast/engine/facade.py"], past="source")
C(["tests/unit/engine/test_resets.py"], past="source", Past="ResetSource")
C(["src/holdfast/engine/rules/*", "src/holdfast/engine/executions/*", "src/holdfast/engine/tasks/*", "src/holdfast/engine/messages/*", MUT], begin="start_execution")
X(["src/holdfast/engine/*", MUT], (r"\b(starting|starts)\.begin\(", "starts.start_execution("))
C(["src/holdfast/engine/rules/messages.py"], _begin="_start_by_trigger", go_on="continue_delivery", handing="round_", _tell_kept="_update_kept")
C(["src/holdfast/engine/rules/starts.py", "src/holdfast/engine/rules/commands.py"], asked="new")
C(["src/holdfast/engine/rules/resets.py"], go_on="continue_from")
X([ENG, UENG, MUT], (r"\b(rebuilding|resets)\.go_on\b", "resets.continue_from"), (r"\b(msg|messages|rules)\.go_on\b", r"\1.continue_delivery"), (r"\bimport go_on\b", "import continue_from"))
C(["src/holdfast/engine/executions/*"], go_on="continue_from")
C(["src/holdfast/engine/messages/*", "src/holdfast/engine/upkeep/*"], go_on="continue_delivery")
C([ENG], bury="dead_letter", bury_unread="dead_letter_unread", _buried="_dead_lettered")
C([STO, MEM, VST, TSTO], bury="dead_letter", _bury="_dead_letter")
X([CLIENT], (r"\bdef bury_unread\b", "def dead_letter_unread"), (r"\bmailboxes\.bury\(", "mailboxes.dead_letter("), (r"\bdef bury\b", "def dead_letter"))
X(["src/holdfast/contract/*", "src/holdfast/sync/*", "verification/*", "tests/conftest.py"], (r"\bdef bury_unread\b", "def dead_letter_unread"))
X(["*"], (r"\.bury_unread\b(?!`? \|)", ".dead_letter_unread"))
X([SRV], (r'"executions\.bury_unread"', '"executions.dead_letter_unread"'))
C(["docs/*", "README.md"], bury_unread="dead_letter_unread")
X(["src/holdfast/contract/upkeep.py", "src/holdfast/engine/facade.py", "verification/*", "tests/*", "bench/*", "src/holdfast/services/*", "src/holdfast/testing/*"],
  (r"\b(_?upkeep)\.forget\b", r"\1.prune"))
A(["src/holdfast/contract/upkeep.py"], forget="prune")
X(["src/holdfast/engine/facade.py"], (r"async def forget\(self\)", "async def prune(self)"), (r"def forget\(self\) -> ", "def prune(self) -> "))
C(["src/holdfast/services/housekeeping.py"], _forget="_prune")
A(["src/holdfast/engine/idempotency.py", "src/holdfast/engine/*"], counts_="counts_")
X([ENG], (r"^def counts\(ws", "def is_in_use(ws"), (r"^def counts\(uow", "def is_in_use(uow"), (r"\bidempotency\.counts\b", "idempotency.is_in_use"), (r"from holdfast\.engine\.idempotency import counts\b", "from holdfast.engine.idempotency import is_in_use"), (r"(?<![\w.])counts\((ws|uow),", r"is_in_use(\1,"))
X([SRC, VER, "tests/*"], (r"\bdef counts\(self, ", "def is_valid_at(self, "), (r"\b(key|self|found|known)\.counts\(", r"\1.is_valid_at("))
A([*[f"{ENG}"], "verification/*", STO, "src/holdfast/testing/*", "tests/*", "src/holdfast/telemetry/*", "bench/*"], doubted="commit_in_doubt", meanwhile="writer_idle")
C([PG], Meanwhile="WriterIdle", _nothing_meanwhile="_ignore_idle", meanwhile="writer_idle", _doubted="_in_doubt")
C([f"{ENG}", UENG, "tests/unit/transport/*", "src/holdfast/contract/*", WRK, "src/holdfast/transport/*", "src/holdfast/server/*", CLIENT, "tests/*", VER, "src/holdfast/testing/*"], News="PendingEvents")
C([f"{ENG}", WRK, REPLAY, "src/holdfast/testing/mock_workflow.py", SIM, "tests/replay/*"], news="pending_events")
A([STO, "src/holdfast/model/*", MEM, VST, TSTO, "verification/invariants/*", UENG, "tests/verification/*"], news="pending_events")
X(["src/holdfast/store/*.py"], (r"\bworker, news, avoid_build\b", "worker, pending_events, avoid_build"))
C(["src/holdfast/store/rows.py", "src/holdfast/store/sqlite/*", PG], _news="_pending_events", _NEWS="_PENDING_EVENTS", _news_at="_pending_events_at")
X(["src/holdfast/store/rows.py"], (r"\bnews\b(?=[:,)])", "pending_events"), (r"=news\b", "=pending_events"))

# --- execution rows: not where `head` is HTTP's ---------------------------------------------------------------------
HEAD = [ENG, STO, VER, "tests/unit/engine/*", TSTO, "tests/verification/*", "tests/faults/*", "tests/replay/*", "tests/database_access.py"]
C(HEAD, head="execution_row", heads="execution_rows", _heads="_execution_rows", _check_head="_check_execution_row", _head="_execution_row", _HEADS="_EXECUTION_ROWS",
  _HEADS_THERE="_EXECUTIONS_THERE")
RULES[:] = [rule for rule in RULES]
C([ENG], _read_head="_read_execution")

# --- store ----------------------------------------------------------------------------------------------------------
STICKY = [STO, VST, MEM, TSTO, "src/holdfast/engine/backfill.py", "bench/claiming.py"]
C([*STICKY, "src/holdfast/engine/dispatcher.py"], Leave="StickyPolicy", long_from="min_events", for_us="sticky_us", ours="cached", is_ours="is_cached", leaves="skips")
C([STO, VST, MEM, TSTO, "bench/claiming.py"], leave="sticky")
CUR = ["src/holdfast/store/*", TSTO, "bench/claiming.py", "bench/claims.py", VST, MEM, "docs/*"]
C(["src/holdfast/store/sqlite/claims.py"], front="oldest_live")
C(CUR, Fronts="ClaimCursors", fronts="claim_cursors", _fronts="_claim_cursors", Lane="ClaimCursor", lanes="cursors", _lanes="_cursors", lane="cursor", _Front="_ScopeCursors", front="known",
  should_look="should_refresh", looked="refreshed", _in_lanes="_from_cursors", _look_again="_refresh_again", found_lanes="found_cursors", every_front_is_long="every_scope_is_long", in_lanes="from_cursors",
  in_lane="from_cursor", _front="_oldest_live", always_in_lanes="always_from_cursors", _LINES="_SCOPES", _TURNS_IN_LANES="_TURNS_FROM_CURSORS", _TASKS_IN_LANES="_TASKS_FROM_CURSORS", _FRONT="_OLDEST_LIVE")
LINES = ["src/holdfast/store/claim_cursors.py", "src/holdfast/store/*/claims.py", "tests/stores/test_claim_cursors.py", "tests/stores/test_postgres_claim_cursors.py", "tests/stores/always_cursors.py", "bench/claiming.py"]
C(LINES, Line="ClaimScope", line="scope", Wary="AlwaysCursors", make_wary="claim_from_cursors", Look="RefreshCursors", _look="_refresh")
C([TSTO], make_wary="claim_from_cursors", wary="always_cursors")
X([STO], (r'"(in_lanes)"', '"from_cursors"'), (r'"(in_lane)"', '"from_cursor"'), (r'("(?:ready|tasks)", )"front"', r'\1"oldest_live"'), (r'"go_on"', '"advance"'), (r'"bereaved"', '"orphans"'),
  (r'"bury"', '"dead_letter"'), (r'"exhume"', '"replay_dead"'), (r'(statement|rows)\("executions", "heads"\)', r'\1("executions", "by_ids")'),
  (r"^-- name: in_lanes$", "-- name: from_cursors"), (r"^-- name: in_lane$", "-- name: from_cursor"), (r"^-- name: front$", "-- name: oldest_live"), (r"^-- name: go_on$", "-- name: advance"),
  (r"^-- name: heads$", "-- name: by_ids"), (r"^-- name: bereaved$", "-- name: orphans"), (r"^-- name: bury$", "-- name: dead_letter"), (r"^-- name: exhume$", "-- name: replay_dead"))
X([TSTO, "bench/*", VER, UENG], (r'"(ready|tasks)", "front"', r'"\1", "oldest_live"'), (r'"(ready|tasks)", "in_lanes"', r'"\1", "from_cursors"'), (r'"executions", "go_on"', '"executions", "advance"'), (r'"executions", "bereaved"', '"executions", "orphans"'))
C([PG, ARCH], floor="due_cursor")
C([PG, "verification/chaos/broken_store.py", TSTO, ARCH], Marks="CommitMarkers", _marks="_commit_markers", marks="commit_markers", Floor="DueCursor", floors="due_cursors",
  Aside="LockWaiters", _aside="_lock_waiters", aside="lock_waiters", Visit="ExternalConnection", visit="wrap_connection", visits="external_connection", Past="DatabaseIdentity", Risk="DurabilityRisk", risks="durability_risks",
  by_keys="index_only", _BY_KEYS="_INDEX_ONLY", Hints="Notifications", _joining="_caller_transactions", guilty="offender", every_look_is_long="every_lookup_is_long")
C([TSTO, "bench/claiming.py"], floor="cursor")
C([CLI], risks="durability_risks")
A(["tests/unit/client/remote/*"], _asked="_pending", _leftovers="_unsettled", _caller="_http")
C([UENG, "bench/claiming.py", "tests/faults/*"], _aside="_lock_waiters", Floor="DueCursor", floors="due_cursors", Hints="Notifications")
C(["src/holdfast/store/postgres/lock_waiters.py", "src/holdfast/store/postgres/transactions.py"], Waiting="LockWaiter")
C([PG, "tests/unit/engine/test_using_postgres.py", TSTO, ARCH], Watch="CallerCommitWatcher")
C([PG, MEM, "verification/chaos/broken_store.py", SIM, TSTO, "tests/verification/test_memory_in_doubt.py", ARCH], Doubt="InDoubtCommit", doubt="in_doubt")
A([STO, ENG, MEM, VST, TSTO], turned="state_changed")
C(["src/holdfast/store/*"], turned="state_changed")
X(["tests/faults/test_failover.py", "tests/stores/*"], (r"\bdata_loss_detected\b", "data_loss_detected"))
# settings: `hints` is LISTEN/NOTIFY, except where it is a type hint
NOTIFY = ["src/holdfast/config.py", "src/holdfast/store/postgres/urls.py", "src/holdfast/store/postgres/connections.py"]
C(NOTIFY, hints="notify")
X(NOTIFY, (r'"hints"', '"notify"'), (r"^    hints: bool", "    notify: bool"), (r"`hints=False`", "`notify=False`"))
X([SRC, "tests/*", "docs/*", "bench/*", "README.md", "CHANGELOG.md", VER], (r"\bhints=(off|on|False|True|maybe)\b", r"notify=\1"), (r"\b(database|_database|place|self\.config|config)\.hints\b", r"\1.notify"),
  (r'\{"hints": False\}', '{"notify": False}'), (r'\?notify=maybe", "hints"', '?notify=maybe", "notify"'))
X(["docs/settings.md"], (r"^\| `hints` \|", "| `notify` |"))
X(["tests/stores/test_postgres_connections.py"], (r'"""`hints` is', '"""`notify` is'))
C([PG, TSTO, "src/holdfast/cli/doctor/database_checks.py", UENG], hints="notifications", _hints="_notifications")
X(["src/holdfast/store/postgres/notifications.py"], ('"holdfast hints"', '"holdfast notifications"'))

# --- worker, services, replay, front-end ----------------------------------------------------------------------------
C([WRK, "src/holdfast/assembly.py", "src/holdfast/testing/*", SIM, "tests/unit/worker/*", "tests/unit/testing/*", ARCH], Pulse="Heartbeater", Host="WorkerRuntime", Looker="PendingQuery")
C([WRK, "tests/unit/worker/*", "tests/unit/engine/*"], _host="_runtime")
C([SIM, "src/holdfast/testing/*", "tests/unit/*", "tests/faults/*", "bench/*", "src/holdfast/assembly.py"], _host="_runtime")
X([WRK], (r"(?<![.\w\"'])host(?![\w=\"'])", "runtime"), ('"holdfast-pulse"', '"holdfast-heartbeats"'))
X(["src/holdfast/worker/*", "src/holdfast/assembly.py"], (r"\bhost=host\b", "runtime=runtime"))
A([WRK, SIM, "src/holdfast/testing/virtual_engine.py"], gone="on_closed", rested="on_idle")
C([WRK], Look="QueryCallback", _Said="_SentOutput", _said="_sent", drop_lookers="drop_pending_queries")
A(["src/holdfast/worker/turns.py"], look="callback")
C(PY, Clockwork="DueWorkService", clockwork="due_work", Lookout="PeerWatcher", Asking="Syscalls")
X([SRC, VER, "tests/*"], ('"holdfast-clockwork"', '"holdfast-due-work"'), ('"holdfast-lookout"', '"holdfast-peer-watcher"'), (r"holdfast-clockwork\b", "holdfast-due-work"), (r"holdfast-lookout\b", "holdfast-peer-watcher"))
C(["src/holdfast/services/*"], SLOWER="BACKOFF", BREATH_S="MIN_GAP_S", BUSY_BREATH_S="BUSY_GAP_S", breath_s="gap_s", rest_s="max_s", _rest_s="_max_s")
A([REPLAY, "src/holdfast/frontends/python/program.py", "tests/replay/test_turns.py", "tests/replay/driving.py", "tests/unit/frontends/python/*"], move="on_reset")
A([REPLAY, FRONT, "tests/replay/test_turns.py", "tests/replay/test_random_programs.py"], former="reset_sources")
C([REPLAY], _move="_notify_reset")
C([REPLAY, FRONT], hear="listen")
C(["src/holdfast/frontends/*", "tests/unit/frontends/*"], picture="snapshot_of")
C(["src/holdfast/frontends/python/saga.py"], Book="CompensationLog", _book="_compensations")
C(["src/holdfast/frontends/python/*", "tests/unit/frontends/*"], Wall="ClosedLoop")

# --- server ---------------------------------------------------------------------------------------------------------
C([SRV, "src/holdfast/assembly.py", "tests/*", "bench/*", VER, ARCH], Guests="OpenRequests", guests="open_requests", Nouns="EngineApi", nouns="engine_api", _nouns="_engine_api", nouns_of="engine_api_of", Budgets="LoginThrottle", _budgets="_throttle", budgets="throttle")
A(["src/holdfast/server/rest/*"], stay="hold")
C(["src/holdfast/server/rest/open_requests.py"], _staying="_held", _send_away="_end_expired")
C(["src/holdfast/server/errors.py"], Told="ErrorMapping", told="mapping_of")
X([SRV], (r"(?<![\w.])told\(", "mapping_of("), (r"\bimport (.*)\btold\b", r"import \1mapping_of"), (r"\berrors\.told\b", "errors.mapping_of"))
C(["src/holdfast/server/api_server.py", "src/holdfast/assembly.py"], Door="Listener", doors="listeners", _door="_app", door="listener", _grpc_door="_grpc_listener")
C([SRV, "bench/*", "tests/unit/server/*"], _door="_app")
C(["tests/unit/server/grpc/*", "tests/grpc_server.py"], door="grpc_api")
C(["tests/unit/server/*", "tests/unit/client/*", "tests/e2e/*", "tests/rest_server.py", "tests/grpc_server.py", "tests/faults/remote_app.py", "tests/faults/test_remote_worker.py", "tests/unit/telemetry/*", "tests/unit/engine/*", "tests/faults/*", "bench/*", "tests/unit/sync/*"],
  Door="ApiClient", door="api", doors="apis", open_doors="open_apis")
C(["src/holdfast/server/rest/list_streams.py"], Watch="ListStream", ListWatches="ListStreams", watch="stream")
C([SRV, "tests/unit/server/*"], ListWatches="ListStreams", _watches="_streams", watches="list_streams")

# --- client, cli ----------------------------------------------------------------------------------------------------
C([CLIENT, "src/holdfast/sync/*", "tools/*", "tests/unit/client/*", "src/holdfast/assembly.py", ARCH], Operating="Administration", Face="SyncFacade", Explaining="Explainer", call_open="call_open_successor", change_open="change_open_successor", sent_to="redirect_signal", Connecting="ConnectContext")
C(["src/holdfast/client/successors.py", "src/holdfast/client/client.py", "src/holdfast/client/handles.py"], to_="to_")
X(["src/holdfast/client/*"], (r"^def to\(request", "def redirect(request"), (r"(?<![\w.])to\(request, ", "redirect(request, "), (r"\bsuccessors\.to\(", "successors.redirect("), (r"(from holdfast\.client\.(?:following|successors) import [^\n]*)\bto\b$", r"\1redirect"))
C(["tools/*"], face="facade", faces="facades")
C([CLIENT, SRC, "tests/*"], explaining="explainer")
C(["src/holdfast/client/remote/*"], Asked="PendingRequest", _asked="_pending", asked="pending", Connections="ConnectionPool", _leftovers="_unsettled")
C(["src/holdfast/client/remote/*", CLI, CLIENT, "tests/unit/client/*", "tests/unit/cli/*", "bench/rest.py"], Caller="HttpClient")
C(["src/holdfast/client/remote/*", CLI], caller="http_client", _caller="_http")
RULES = [r for r in RULES]
C([CLI, "tests/unit/cli/*", "tests/stores/test_migrate_command.py", "tests/stores/test_doctor.py"], Door="Target", door="target", with_door="with_target", doors="target", Keyring="ApiKeys", Story="HistoryText", tell_where="print_addresses", tell_what_runs="print_app", looking="read_only")
A(["src/holdfast/cli/*"], look="read")
X(["src/holdfast/cli/workflow/__init__.py"], (r"\{_HERE\}\.look:", "{_HERE}.inspect:"), (r"\{_HERE\}\.change:", "{_HERE}.modify:"))
X(["src/holdfast/cli/workflow/show.py", "src/holdfast/cli/doctor/*"], (r"(?<![.\w])look\(", "inspect_workflow("), (r"\bimport (.*)\blook\b", r"import \1inspect_workflow"))
C([CLI, "tests/unit/cli/*"], story="history_text")
X(["src/holdfast/cli/doctor/*"], (r"\bpoll_changes\b", "check_all"))
X(["tests/unit/cli/*", "tests/stores/*"], (r"\bpoll_changes\b", "poll_changes"))

# --- public names ---------------------------------------------------------------------------------------------------
C(["*.py", "*.md"], On="EventTrigger", Status="WorkflowStatus", Delivery="DeliveryMode")
PUB = ["src/holdfast/__init__.py", "src/holdfast/client/*", "!src/holdfast/client/remote/*", "src/holdfast/assembly.py", "src/holdfast/sync/*", "src/holdfast/frontends/*", "src/holdfast/cli/*",
       "!src/holdfast/cli/key.py", "!src/holdfast/cli/api_keys.py", "tests/*", "!tests/unit/server/*", "!tests/unit/transport/*", "docs/*", "README.md", "examples/*", "bench/*", "tools/*", VER, "src/holdfast/diagnostics/*"]
C([*PUB], Published="PublishResult", Broadcast="BroadcastResult", TaskView="StandaloneTaskInfo", EventView="EventInfo", EventKeyView="EventKeyInfo", WaitView="WaitInfo", PromiseView="PromiseInfo", KeyView="KeyInfo")
C(["src/holdfast/contract/keys.py", "src/holdfast/engine/key_facade.py", "src/holdfast/engine/keys/*"], KeyView="KeyInfo")
X([SRV, "src/holdfast/transport/*"], (r"\b(ks|contract)\.KeyView\b", r"\1.KeyInfo"))
X(["src/holdfast/client/client.py", "src/holdfast/client/sync.py"], (r"\bdef event_key\(", "def describe_event_key("), (r"_wrapped\.event_key\b", "_wrapped.describe_event_key"))
X(["tests/*", "docs/*", "README.md", "examples/*", "bench/*", "src/holdfast/cli/*"], (r"\bclient\.event_key\(", "client.describe_event_key("), (r"`event_key\(", "`describe_event_key("))
X([MUT], (r"\bidempotency\.counts\b", "idempotency.is_in_use"), (r'idempotency, "counts"', 'idempotency, "is_in_use"'))
X(["tests/*"], (r"http_client import Caller as HttpCaller", "http_client import HttpClient as HttpCaller"))

# --- second pass: verbs ---------------------------------------------------------------------------------------------
X(["tools/*"], (r"import Face\"", 'import SyncFacade"'), (r"\(Face\[", "(SyncFacade["), (r'"ShortForms"', '"EngineShortcuts"'), (r"The blocking faces of", "The blocking facades of"), (r"The short forms of", "The shortcuts of"))
X(["src/holdfast/client/sync.py", "src/holdfast/sync/*"], (r"The blocking faces of", "The blocking facades of"), (r"The short forms of", "The shortcuts of"))
NOTI = [PG, "tests/stores/test_postgres_notifications.py", UENG, "bench/*", "tests/stores/*"]
X([*NOTI], (r"\b(notifications|_notifications|node|healthy|off|one|two|first|second|other|self|hearing)\.tell\(\)", r"\1.notify_peers()"), (r"\b_notifications\.tell\b", "_notifications.notify_peers"),
  (r"\b(_notifications|self)\.hear\(\)", r"\1.on_notified()"))
A(["src/holdfast/store/postgres/notifications.py"], tell="notify_peers", hear="on_notified")
C(["src/holdfast/store/postgres/notifications.py", "tests/stores/test_postgres_notifications.py"], _to_tell="_to_send", _untold="_unsent", _say="_send_word")
C(["src/holdfast/store/postgres/sessions.py"], hear="on_notified", _HEARD_S="_NOTIFIED_S")
C(["src/holdfast/store/postgres/transactions.py", "src/holdfast/store/sqlite/transactions.py"], _tell="_notify", _told_version="_seen_version", _WARY="_CAREFUL", _nobody_waits="_ignore_late", _LEAVE_S="_CLOSE_S")
C(["src/holdfast/store/postgres/in_doubt.py"], _tell="_notify", tell="notify")
A([PG], told="notified")
C(["src/holdfast/store/postgres/claims.py"], look="fetch")
C(["src/holdfast/store/postgres/failover.py", "tests/stores/test_postgres_failover.py"], past="identity")
C(["src/holdfast/store/postgres/*"], patience_s="wait_s", patience="wait", patience_ms="wait_ms", _PATIENCE_S="_WAIT_S", gone_on="advanced")
C(["src/holdfast/store/sqlite/*"], gone_on="advanced", patience_s="wait_s", _PATIENCE_S="_WAIT_S", _COURTESY_S="_YIELD_S")
C(["src/holdfast/store/protocol.py", ENG, "src/holdfast/contract/*", WRK, CLIENT, CLI, MEM, "src/holdfast/testing/*", "src/holdfast/engine/*", "tests/unit/testing/*", UENG, SIM], patience_s="wait_s", _patience_s="_wait_s", PATIENCE_S="WAIT_S", patience="wait")
C([ENG], hear="add_output", look="read")
X(["src/holdfast/engine/facade.py", "src/holdfast/client/*"], (r"\bmailboxes\.look\(", "mailboxes.read("))
C(["src/holdfast/client/mailbox.py"], look="read")
C(["src/holdfast/engine/caller_transaction.py"], _look="_poller", _again="_poll_again")
C(["src/holdfast/engine/facade.py"], _looking="_polling")
C(["src/holdfast/engine/queries.py", "tests/unit/engine/test_queries.py"], _asked="_pending")
C(["src/holdfast/engine/rules/retained_events.py"], _asked="_queries", look_at="consider")
C(["src/holdfast/engine/rules/keys.py", "src/holdfast/engine/key_facade.py"], look_at="check_row")
C(["src/holdfast/engine/key_cache.py", "src/holdfast/engine/key_facade.py", "src/holdfast/server/auth/*", "tests/unit/server/test_auth.py"], _asking="_lookups", asked_at="requested_at")
C(["src/holdfast/engine/rules/commands.py", "src/holdfast/engine/rules/promises.py"], _tell="_deliver_outcome")
C(["src/holdfast/engine/rules/resets.py"], _floor="_point_before")
C(["src/holdfast/engine/task_feeds.py"], floor="trimmed_to", _begin="_start")
C(["src/holdfast/engine/executions/*"], beginning="new_execution", _in_the_family="_in_the_family")
C(["src/holdfast/engine/rules/children.py"], _is_to_begin="_is_to_start")
C(["src/holdfast/engine/turns/*"], leave_row="keep_row")
C(["src/holdfast/engine/rules/output.py"], said="last_seq")
C(["src/holdfast/frontends/python/conditions.py", "tests/unit/frontends/python/test_context_conditions.py"], look="check")
C(["src/holdfast/frontends/python/calls.py"], _look="_snapshot", look="reader")
C(["src/holdfast/frontends/python/saga.py"], look="check")
C(["src/holdfast/frontends/python/messages.py"], _looks_back="_replays")
C(["src/holdfast/worker/queries.py", "src/holdfast/worker/turns.py"], look="callback", looker="query", lookers="queries")
C(["src/holdfast/worker/output.py", "src/holdfast/worker/tasks.py"], said="sent")
C(["src/holdfast/worker/tasks.py", "src/holdfast/frontends/python/task_context.py", "src/holdfast/testing/mock_task.py", "tests/unit/*"], say="emit_chunk", _say="_emit_chunk")
C(["src/holdfast/testing/mock_task.py"], _hear="_record_chunk")
C(["src/holdfast/server/grpc/deadlines.py"], _look="_check")
C(["src/holdfast/server/rest/list_streams.py"], _tell="_publish", _news="_pending")
C(["src/holdfast/server/grpc/*"], let_go="release", _let_go="_release_turn", _look_if_quiet="_check_quiet", go_on_with="take_over", leave="finish", former="previous", _check_former="_check_previous", _end_former="_end_previous")
C(["src/holdfast/client/remote/workers.py"], _former="_previous", _server_leaves="_server_stopping", _tell_loop="_call_loop", _heard_at="_received_at")
A(["src/holdfast/client/remote/*", "tests/unit/client/remote/*"], doubt="suspect", _server_leaves="_server_stopping", _former="_previous", _tell_loop="_call_loop")
C(["src/holdfast/client/portal.py", "tests/unit/client/*"], _let_go="_abandon", LOOK_S="CHECK_S")
C(["src/holdfast/client/options.py", "src/holdfast/client/client.py", "src/holdfast/client/tasks.py"], beginning_at="start_instant")
C(["src/holdfast/client/task_output.py", "src/holdfast/cli/task_watch.py", "src/holdfast/transport/rest/task_output_views.py", "src/holdfast/server/rest/handlers/task_output.py", "src/holdfast/engine/task_feeds.py", "src/holdfast/client/remote/http_executions.py"], news="item", _TASK_NEWS="_TASK_ITEM")
W(news_view="feed_item_view", read_news="read_feed_item")
C(["src/holdfast/transport/grpc/*"], _news="_pending_events", _news_message="_pending_events_message")
C(["src/holdfast/diagnostics/*"], told="text")
C(["src/holdfast/client/explainer.py"], told="lines")
C(["src/holdfast/cli/*"], begun="started", _words="_text_of", tell="show", _say="_print", _began="_started_text")
C(["src/holdfast/testing/watched_store.py", MEM], _tell="_notify", _told="_notified")
C(["src/holdfast/testing/mock_workflow.py"], _told="_described")
C([MEM, "tests/verification/*", SIM], _told_commits="_seen_commits", _told_of="_seen_of", told_after_s="notified_after_s", _hears="_hears_peers", _doubts="_in_doubt")
C(["src/holdfast/assembly.py", "src/holdfast/testing/virtual_engine.py", "src/holdfast/cli/engines.py", SIM], _begin="_start_services")
C(["src/holdfast/frontends/python/*", "src/holdfast/client/remote/*"], _begin="_start")
C(["verification/memory/write.py"], _go_on="_advance")
C(["verification/invariants/*"], _fate="_parent_close", _leftovers="_remaining_rows")
W(parent_not_told="parent_not_notified", cancel_not_told="cancel_not_delivered", child_told_twice="child_notified_twice", task_result_not_told="task_result_not_delivered", start_begins_twice="start_runs_twice", reset_leaves_letters="reset_keeps_dead_letters", letters_without_reason="dead_letters_without_reason")
C(["tests/unit/engine/test_post_commit.py"], leftovers="post_commit")
C(["tests/unit/worker/*"], pulse="heartbeater")
C(["tests/unit/engine/test_leases.py"], news="pending_events")
C(["tests/replay/event_world.py", "tests/unit/engine/test_wakeups.py"], portion="chunk")
A(["tests/unit/engine/test_wakeups.py"], doubt="note_peer_write")
A(["tests/stores/test_postgres_notifications.py"], tell="notify_peers", hear="on_notified")
X(["tests/stores/test_sqlite.py"], (r'"in_lane"', '"from_cursor"'), (r'"front"', '"oldest_live"'), (r'"bereaved"', '"orphans"'), (r'"go_on"', '"advance"'))
X(["tests/*"], (r"holdfast\.cli\.target\.Door\.look\b", "holdfast.cli.target.Target.read"), (r"holdfast\.cli\.target\.Door\b", "holdfast.cli.target.Target"))
A(["tests/unit/client/*"], _caller="_http")
X(["tests/unit/frontends/python/test_source_lines.py"], (r'"test_lines\.py"', '"test_source_lines.py"'))
