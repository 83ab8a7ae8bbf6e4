"""Which files move where, in order: (old path, new path)."""

T = "src/holdfast/testing"
MOVES = [
    # verification leaves the wheel
    (f"{T}/simulation", "verification/simulation"),
    (f"{T}/invariants", "verification/invariants"),
    (f"{T}/stores", "verification/stores"),
    (f"{T}/memory", "verification/memory"),
    (f"{T}/mutants.py", "verification/mutants.py"),
    (f"{T}/postgres.py", "verification/postgres.py"),
    (f"{T}/postgres_binaries.py", "verification/postgres_binaries.py"),
    (f"{T}/postgres_databases.py", "verification/postgres_databases.py"),
    ("tests/faults/chaos/test_checker.py", "tests/verification/test_chaos_checker.py"),
    ("tests/faults/chaos/test_nemesis.py", "tests/verification/test_chaos_nemesis.py"),
    ("tests/faults/chaos", "verification/chaos"),
    ("tests/faults/test_metronome.py", "tests/verification/test_metronome.py"),
    ("tests/unit/testing/test_invariants.py", "tests/verification/test_invariants.py"),
    ("tests/unit/testing/test_invariants_among.py", "tests/verification/test_invariants_among.py"),
    ("tests/unit/testing/test_invariants_early.py", "tests/verification/test_invariants_early.py"),
    ("tests/unit/testing/test_invariants_outside.py", "tests/verification/test_invariants_outside.py"),
    ("tests/unit/testing/test_memory_doubt.py", "tests/verification/test_memory_doubt.py"),
    ("tests/unit/testing/test_postgres.py", "tests/verification/test_postgres.py"),
    ("tests/unit/testing/test_simulation_checks.py", "tests/verification/test_simulation_checks.py"),
]

S = "src/holdfast"
def _m(folder, **names):
    return [(f"{S}/{folder}/{old}.py", f"{S}/{folder}/{new}.py") for old, new in names.items()]

MOVES += [
    *_m("engine", desk="dispatcher", refill="backfill", leftovers="post_commit", unit_of_work="group_commit", outcomes="result_waiters",
        past="reset_source", joining="caller_transaction", observing="instrumentation", scraping="metrics_page", pausing="pause_sync", deleting="org_deletion"),
    *_m("engine/rules", workspace="unit_of_work", starting="starts", signalling="signals", rebuilding="resets", look_backs="retained_events"),
    *_m("engine/executions", bury_unread="dead_letter_unread"),
    *_m("engine/upkeep", forget="prune"),
    *_m("engine/keys", record="audit"),
    *_m("store", fronts="claim_cursors", looks="queries"),
    *_m("store/sqlite", places="open_files", joining="caller_transaction", deployed="definitions", faults="driver_errors"),
    *_m("store/postgres", marks="commit_markers", doubts="in_doubt", floors="due_cursor", aside="lock_waiters", visits="external_connection",
        watching="caller_commits", joining="caller_transaction", timelines="failover", standbys="durability", planning="read_session",
        hints="notifications", deployed="definitions", faults="driver_errors"),
    *_m("worker", host="runtime"),
    *_m("services", clockwork="due_work", lookout="peer_watcher", loops="service"),
    *_m("replay", asking="syscalls"),
    *_m("frontends/python", looking="read_only", reading="introspection", lines="source_lines"),
    *_m("model", names="validation", key_text="api_key_text"),
    *_m("client", operating="admin", following="successors", explaining="explainer"),
    *_m("client/remote", asked="pending_request", caller="http_client", connection="http_pool", links="channels", http="http_executions", connecting="connect_context"),
    *_m("cli", doors="target", words="formatting", story="history_text", exits="exit_codes", keyrings="api_keys"),
    (f"{S}/cli/checkup.py", f"{S}/cli/doctor/runtime_checks.py"),
    (f"{S}/cli/database_checks.py", f"{S}/cli/doctor/database_checks.py"),
    (f"{S}/cli/diagnosis.py", f"{S}/cli/doctor/examination.py"),
    (f"{S}/cli/doctor.py", f"{S}/cli/doctor/__init__.py"),
    *_m("cli/workflow", look="inspect", change="modify"),
    (f"{S}/api/server.py", f"{S}/server/api_server.py"),
    (f"{S}/api/nouns.py", f"{S}/server/engine_api.py"),
    (f"{S}/api/auth/budgets.py", f"{S}/server/auth/login_throttle.py"),
    (f"{S}/api/rest/door.py", f"{S}/server/rest/app.py"),
    (f"{S}/api/rest/sessions.py", f"{S}/server/rest/open_requests.py"),
    (f"{S}/api/rest/documents.py", f"{S}/server/rest/json_bodies.py"),
    (f"{S}/api/rest/watches.py", f"{S}/server/rest/list_streams.py"),
    (f"{S}/api/grpc/strangers.py", f"{S}/server/grpc/payload_checks.py"),
    (f"{S}/api", f"{S}/server"),
    (f"{S}/wire", f"{S}/transport"),
    (f"{S}/explaining/words.py", f"{S}/diagnostics/formatting.py"),
    (f"{S}/explaining", f"{S}/diagnostics"),
    (f"{S}/blocking/short_forms.py", f"{S}/sync/shortcuts.py"),
    (f"{S}/blocking", f"{S}/sync"),
    ("tools/wire.py", "tools/protobuf.py"),
    ("tools/sync_faces.py", "tools/sync_facades.py"),
    # tests mirror them
    ("tests/unit/api", "tests/unit/server"),
    ("tests/unit/wire", "tests/unit/transport"),
    ("tests/unit/blocking", "tests/unit/sync"),
    ("tests/http_door.py", "tests/rest_server.py"),
    ("tests/grpc_door.py", "tests/grpc_server.py"),
    ("tests/looking.py", "tests/database_access.py"),
    ("tests/unit/client/test_sync_faces.py", "tests/unit/client/test_sync_facades.py"),
    ("tests/unit/client/test_short_forms.py", "tests/unit/client/test_shortcuts.py"),
    ("tests/unit/engine/test_short_forms.py", "tests/unit/engine/test_shortcuts.py"),
    ("tests/unit/engine/test_leftovers.py", "tests/unit/engine/test_post_commit.py"),
    ("tests/unit/engine/test_rebuilding.py", "tests/unit/engine/test_resets.py"),
    ("tests/unit/engine/test_deleting_orgs.py", "tests/unit/engine/test_org_deletion.py"),
    ("tests/unit/engine/test_following.py", "tests/unit/engine/test_history_streams.py"),
    ("tests/unit/client/over_http/test_following.py", "tests/unit/client/over_http/test_history_streams.py"),
    ("tests/unit/frontends/python/test_looking.py", "tests/unit/frontends/python/test_read_only.py"),
    ("tests/unit/frontends/python/test_lines.py", "tests/unit/frontends/python/test_source_lines.py"),
    ("tests/unit/cli/test_story.py", "tests/unit/cli/test_history_text.py"),
    ("tests/unit/cli/test_diagnosis.py", "tests/unit/cli/test_examination.py"),
    ("tests/unit/model/test_key_text.py", "tests/unit/model/test_api_key_text.py"),
    ("tests/stores/test_fronts.py", "tests/stores/test_claim_cursors.py"),
    ("tests/stores/test_postgres_fronts.py", "tests/stores/test_postgres_claim_cursors.py"),
    ("tests/stores/test_postgres_floors.py", "tests/stores/test_postgres_due_cursor.py"),
    ("tests/stores/test_postgres_hints.py", "tests/stores/test_postgres_notifications.py"),
    ("tests/stores/test_postgres_doubt.py", "tests/stores/test_postgres_in_doubt.py"),
    ("tests/stores/test_postgres_timelines.py", "tests/stores/test_postgres_failover.py"),
    ("tests/stores/test_postgres_standbys.py", "tests/stores/test_postgres_durability.py"),
    ("tests/stores/test_postgres_faults.py", "tests/stores/test_postgres_driver_errors.py"),
    ("tests/stores/test_sqlite_places.py", "tests/stores/test_sqlite_open_files.py"),
    ("tests/stores/wary.py", "tests/stores/always_cursors.py"),
    ("tests/stores/explaining.py", "tests/stores/query_plans.py"),
    ("tests/verification/test_memory_doubt.py", "tests/verification/test_memory_in_doubt.py"),
]

# Exact texts of single files (their path before or after the moves).
LITERAL: dict[str, list[tuple[str, str]]] = {
    "tools/protobuf.py": [('"holdfast" / "wire" / "grpc"', '"holdfast" / "transport" / "grpc"')],
    "tools/sync_facades.py": [('PACKAGE / "blocking" / "short_forms.py"', 'PACKAGE / "sync" / "shortcuts.py"')],
    "pyproject.toml": [
        ("(api)", "(server)"), ("(blocking)", "(sync)"), ("(explaining)", "(diagnostics)"), ("(wire)", "(transport)"),
        ('"src/holdfast/testing/postgres*.py"', '"verification/postgres*.py"'),
        ('known-first-party = ["holdfast", "examples", "bench", "tests", "tools"]', 'known-first-party = ["holdfast", "examples", "bench", "tests", "tools", "verification"]'),
        (
            '"tests/**" = [\n',
            '"verification/chaos/**" = [\n'
            '  "ARG",   # what stands in a rule\'s place takes what the rule takes\n'
            '  "ASYNC", # its processes may block: nobody else is on their loop\n'
            '  "BLE",   # a checker reports whatever was raised\n'
            '  "S",     # starts and kills processes, draws seeded random numbers\n'
            '  "SLF",   # breaks rules where they are made\n'
            '  "TRY",   # failures are made on purpose, as plainly as possible\n'
            ']\n"tests/**" = [\n',
        ),
        (
            '[[tool.importlinter.contracts]]\nid = "contract-only"',
            '[[tool.importlinter.contracts]]\n'
            'id = "wheel-alone"\n'
            'name = "The wheel imports nothing from outside of it: no verification, no tests"\n'
            'type = "forbidden"\n'
            'source_modules = ["holdfast"]\n'
            'forbidden_modules = ["verification", "tests", "bench", "examples", "tools"]\n\n'
            '[[tool.importlinter.contracts]]\nid = "contract-only"',
        ),
        ('module = ["tests.*", "bench.*"]', 'module = ["tests.*", "bench.*", "verification.chaos.*"]'),
        ('files = ["src/holdfast"]\nmypy_path', 'files = ["src/holdfast", "verification"]\nmypy_path'),
    ],
    "Makefile": [("src/holdfast examples bench tests tools)", "src/holdfast verification examples bench tests tools)"), ("find src examples bench tests -name", "find src verification examples bench tests -name")],
    "verification/chaos/cluster.py": [("Path(__file__).parents[3]", "Path(__file__).parents[2]")],
}

MODULE_ALIASES: list[tuple[str, str]] = []

# Exact texts put back last: code that runs in a process of the earlier version, which has the old names.
PUT_BACK: dict[str, list[tuple[str, str]]] = {
    "tests/unit/transport/test_earlier_contract.py": [
        (
            "import base64, json, holdfast\nfrom holdfast.server.rest.openapi import openapi\nfrom holdfast.model.events import EVENT_TYPES\nfrom holdfast.transport.grpc import",
            "import base64, json, holdfast\nfrom holdfast.api.rest.openapi import openapi\nfrom holdfast.model.events import EVENT_TYPES\nfrom holdfast.wire.grpc import",
        ),
    ],
}
