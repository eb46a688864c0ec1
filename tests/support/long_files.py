"""Files whose tests take long: they start programs, browsers or Spark. `make test` runs a part of them, `make
test-exhaustive` the rest: of each test function a case, unless it is dear and others prove what it proves.

In: the tests that pytest found. Out: the same tests, those that `make test` leaves out marked `exhaustive`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

# Of these the first case of each test stands for its others. All of a file take more than about five seconds.
FIRST_ONLY = frozenset(
    {
        "analyser/archive/decode/test_spark_page.py",
        "analyser/archive/decode/test_stream.py",
        "analyser/archive/test_run.py",
        "analyser/capture/test_tshark.py",
        "analyser/capture/test_tshark_tunnels.py",
        "analyser/kafka/facts/test_enrich.py",
        "analyser/kafka/facts/test_group_stage.py",
        "analyser/kafka/facts/test_log_ends.py",
        "analyser/mqtt/facts/test_deliveries.py",
        "analyser/mqtt/facts/test_stage.py",
        "analyser/kafka/facts/test_fetch_stage.py",
        "analyser/kafka/facts/test_idle_side.py",
        "analyser/decoding/test_faults.py",
        "analyser/analysis/processes/test_scheduler.py",
        "analyser/engine/rules/test_contract.py",
        "analyser/engine/rules/test_mqtt_costs.py",
        "analyser/analysis/test_no_false_alarms.py",
        "analyser/engine/rules/test_null_columns.py",
        "analyser/analysis/test_partial_captures.py",
        "analyser/engine/rules/test_failures.py",
        "analyser/tcp/test_flow_limits.py",
        "analyser/tcp/test_waits.py",
        "analyser/live/test_session.py",
        "analyser/decoding/run/test_damage.py",
        "analyser/decoding/run/test_log_losses.py",
        "analyser/decoding/run/test_processes.py",
        "analyser/decoding/run/test_same_bytes.py",
        "analyser/decoding/run/test_shares.py",
        "analyser/decoding/run/test_tls.py",
        "analyser/tables/test_rows_and_columns.py",
        "analyser/analysis/test_analysis.py",
        "analyser/analysis/test_order.py",
        "analyser/base/test_faults.py",
        "app/dashboard/test_command.py",
        "app/dashboard/test_days.py",
        "app/dashboard/test_jobs.py",
        "app/dashboard/test_opened.py",
        "app/dashboard/test_packets.py",
        "app/dashboard/test_pages.py",
        "app/dashboard/test_queries.py",
        "app/test_archive.py",
        "app/test_bad_input.py",
        "app/test_commands.py",
        "app/test_crosscheck.py",
        "app/test_datasets.py",
        "app/test_extract.py",
        "app/test_extract_tls.py",
        "app/test_failure.py",
        "app/test_groups_text.py",
        "app/test_hostile_archives.py",
        "app/test_hostile_clocks.py",
        "app/test_hostile_datasets.py",
        "app/test_kafka_views.py",
        "app/test_live.py",
        "app/test_loading.py",
        "app/test_otel.py",
        "app/test_process.py",
        "app/test_processes.py",
        "app/test_query.py",
        "app/test_records.py",
        "app/test_samples.py",
        "app/test_secrets.py",
        "app/test_show.py",
        "app/test_topic_ids.py",
        "app/test_why.py",
        "bench/test_replay.py",
        "dissectors/carriers/tls/test_unwrapping.py",
        "dissectors/kafka/schema/test_walk.py",
        "dissectors/mongo/test_bson.py",
        "fuzz/test_fuzz.py",
        "oracle/test_request_log.py",
        "oracle/test_tshark_tls.py",
        "reports/base/formats/test_text.py",
        "reports/report/compare/test_differences.py",
        "reports/protocols/kafka/questions/test_group_restart.py",
        "reports/protocols/kafka/questions/test_group_states.py",
        "reports/protocols/kafka/questions/test_groups.py",
        "reports/protocols/kafka/questions/test_lag_everywhere.py",
        "reports/protocols/mqtt/questions/test_topics.py",
        "reports/protocols/kafka/questions/test_partitions_of_groups.py",
        "reports/report/why/test_first_cause.py",
        "reports/base/why/test_kafka_chains.py",
        "reports/base/why/test_other_chains.py",
        "support/test_printed.py",
        "test_samples.py",
        "test_tls_samples.py",
    }
)

# Of these each case of so many stands for the others, beside the first of each test: all of a file take more than about
# four seconds.
ONE_OF = {
    "analyser/archive/aggregate/test_aggregates.py": 3,
    "analyser/archive/spark/test_session.py": 4,
    "analyser/mongo/facts/test_stage.py": 3,
    "analyser/kafka/facts/test_reading_runs.py": 9,
    "reports/report/tshark/test_fields.py": 3,
    "analyser/decoding/test_identify.py": 4,
    "analyser/decoding/test_one_answer.py": 2,
    "analyser/decoding/test_stream_portions.py": 4,
    "analyser/decoding/test_tls_handshake.py": 7,
    "analyser/decoding/test_websocket.py": 5,
    "analyser/decoding/test_websocket_in_tls.py": 4,
    "analyser/kafka/rules/test_offset_regression.py": 6,
    "analyser/kafka/rules/test_producer_findings.py": 3,
    "analyser/mongo/rules/test_mongo_samples.py": 2,
    "analyser/mongo/rules/test_mongo_words.py": 4,
    "analyser/engine/rules/test_corrections.py": 3,
    "analyser/engine/rules/test_scenarios.py": 19,
    "analyser/engine/rules/test_partitions.py": 4,
    "analyser/engine/rules/test_tls.py": 10,
    "analyser/engine/rules/test_which_side.py": 5,
    "analyser/tcp/test_flow_table.py": 4,
    "analyser/tcp/test_tcp_cases.py": 4,
    "analyser/decoding/run/test_keys.py": 5,
    "analyser/decoding/run/test_limits.py": 3,
    "analyser/decoding/run/test_logs.py": 5,
    "analyser/decoding/run/test_mqtt_together.py": 3,
    "analyser/decoding/run/test_one_answer.py": 3,
    "analyser/decoding/run/test_together.py": 3,
    "analyser/decoding/run/test_complete_connections.py": 8,
    "analyser/decoding/run/test_whole_mqtt.py": 4,
    "analyser/decoding/run/test_whole_resets.py": 8,
    "analyser/decoding/rows/test_record_arrays.py": 4,
    "analyser/analysis/test_owners.py": 4,
    "app/dashboard/test_safe.py": 3,
    "app/dashboard/test_scope.py": 3,
    "app/expect/test_checking.py": 9,
    "app/expect/test_command.py": 7,
    "app/expect/test_ready.py": 2,
    "app/expect/test_rules.py": 4,
    "app/test_extract_owners.py": 4,
    "app/test_findings.py": 7,
    "app/test_hosts.py": 4,
    "app/test_keylog.py": 3,
    "app/test_live_owners.py": 2,
    "app/test_mcp.py": 5,
    "app/test_otel_live.py": 2,
    "app/test_otel_sender.py": 4,
    "app/test_redaction.py": 3,
    "app/test_shapes.py": 3,
    "dissectors/kafka/lockstep/test_read.py": 9,
    "dissectors/kafka/lockstep/test_batch_decode.py": 4,
    "dissectors/kafka/test_first_request.py": 4,
    "dissectors/kafka/test_inspect.py": 2,
    "dissectors/mongo/lockstep/test_batch_decode.py": 3,
    "dissectors/mongo/lockstep/test_values.py": 3,
    "dissectors/test_properties.py": 4,
    "dissectors/test_secrets.py": 13,
    "fuzz/test_regressions.py": 4,
    "oracle/test_broker_log.py": 7,
    "oracle/test_broker_log_events.py": 3,
    "oracle/test_broker_log_shares.py": 2,
    "oracle/test_broker_log_tables.py": 3,
    "oracle/test_kio.py": 7,
    "oracle/test_mongo_clients.py": 4,
    "oracle/test_mosquitto_log.py": 5,
    "oracle/test_records.py": 6,
    "oracle/test_request_log_sample.py": 2,
    "oracle/test_tshark.py": 4,
    "oracle/test_tshark_limits.py": 4,
    "oracle/test_tshark_mongo.py": 3,
    "oracle/test_tshark_segments.py": 2,
    "reports/protocols/kafka/questions/test_group_list.py": 3,
    "reports/protocols/kafka/questions/test_lag_history.py": 3,
    "reports/report/compare/test_distinguishing.py": 5,
    "reports/base/questions/test_unclassified.py": 5,
    "reports/base/questions/test_waiting.py": 2,
    "reports/report/test_protocol_sections.py": 4,
}

# Of these none runs: each starts Spark, or each of its tests takes more than about four seconds.
NONE = frozenset(
    {
        "analyser/archive/dataset/test_compact.py",
        "analyser/archive/dataset/test_dataset.py",
        "analyser/archive/dataset/test_others.py",
        "analyser/archive/dataset/test_reading.py",
        "analyser/archive/decode/test_share_decoder.py",
        "analyser/archive/decode/test_source.py",
        "analyser/archive/aggregate/test_context.py",
        "analyser/archive/aggregate/test_rules.py",
        "analyser/archive/aggregate/test_kafka_context.py",
        "analyser/archive/aggregate/test_keyed.py",
        "analyser/archive/aggregate/test_lags.py",
        "analyser/archive/commit/test_amend.py",
        "analyser/archive/test_broker_files.py",
        "analyser/archive/test_owners.py",
        "analyser/capture/test_memory.py",
        "analyser/kafka/facts/test_two_clusters.py",
        "analyser/kafka/rules/test_idle_members.py",
        "analyser/engine/rules/test_properties.py",
        "analyser/tcp/test_budget.py",
        "analyser/tcp/test_two_points.py",
        "analyser/decoding/run/test_cut_files.py",
        "analyser/decoding/run/test_memory.py",
        "analyser/analysis/test_joined.py",
        "analyser/analysis/test_owners_of_datasets.py",
        "app/dashboard/test_precomputed.py",
        "app/dashboard/test_broker_files.py",
        "app/dashboard/test_compare.py",
        "app/dashboard/test_live.py",
        "app/dashboard/test_shapes.py",
        "app/dashboard/test_tables.py",
        "app/dashboard/test_topics.py",
        "app/expect/test_plugin.py",
        "app/test_compare.py",
        "app/test_control_characters.py",
        "app/test_extract_lines.py",
        "app/test_live_rights.py",
        "app/test_planted_secrets.py",
        "bench/test_attacks.py",
        "bench/test_rules.py",
        "dissectors/mongo/lockstep/test_captures.py",
        "dissectors/mqtt/lockstep/test_batch_decode.py",
        "reports/protocols/kafka/questions/test_unseen_commits.py",
        "reports/protocols/kafka/sections/test_groups.py",
        "reports/base/why/test_latency.py",
    }
)

# No test with this fixture runs: to start Spark takes fifteen seconds of processor time. `make lab-smoke` has one.
SPARK = "spark"
# Of these tests so many cases run: further ones take long by themselves, measured in processor time.
FEW_CASES = TESTS / "support" / "few_cases.txt"
CASES = {
    test: int(number)
    for number, test in (line.split(maxsplit=1) for line in FEW_CASES.read_text().splitlines() if line[0] != "#")
}


def mark_long(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of long files; for a hook that runs before pytest chooses by marks."""
    met = Counter[str]()
    names = dict[Path, str]()
    for item in items:
        if not isinstance(item, pytest.Function) or _is_left_out(item):
            continue
        if item.path not in names:
            names[item.path] = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""
        name = names[item.path]
        test = f"{name}::{item.nodeid.partition('[')[0].partition('::')[2]}"
        met.update((name, test))
        if SPARK in item.fixturenames or not _is_kept(name, met[name], test, met[test]):
            item.add_marker(pytest.mark.exhaustive)


def _is_kept(name: str, number: int, test: str, case: int) -> bool:
    """Does `make test` run this test? number: of the file, case: of its test function, both from 1 on."""
    if name in NONE:
        return False
    if test in CASES:
        return case <= CASES[test]
    if case == 1:
        return True
    return name not in FIRST_ONLY and number % ONE_OF.get(name, 1) == 0


def _is_left_out(item: pytest.Item) -> bool:
    """Does `make test` leave it out anyway?"""
    return any(item.get_closest_marker(mark) for mark in ("lab", "bench", "exhaustive"))
