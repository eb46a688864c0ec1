"""Files whose tests take long: they start programs, browsers or Spark. `make test` runs a part of them, `make
test-exhaustive` the rest.

In: the tests that pytest found. Out: the same tests, those that `make test` leaves out marked `exhaustive`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

# Of these the first test stands for the others. All of a file take more than about five seconds.
FIRST_ONLY = frozenset(
    {
        "analyser/archive/test_run.py",
        "analyser/capture/test_memory.py",
        "analyser/capture/test_tshark.py",
        "analyser/capture/test_tshark_tunnels.py",
        "analyser/context/test_enrich.py",
        "analyser/context/test_group_stage.py",
        "analyser/context/test_log_ends.py",
        "analyser/context/test_mqtt_deliveries.py",
        "analyser/context/test_mqtt_stage.py",
        "analyser/context/test_reading_stage.py",
        "analyser/context/test_silent_side.py",
        "analyser/context/test_two_clusters.py",
        "analyser/decoding/test_faults.py",
        "analyser/detecting/test_dealing.py",
        "analyser/detectors/test_contract.py",
        "analyser/detectors/test_mqtt_costs.py",
        "analyser/detectors/test_no_false_alarms.py",
        "analyser/detectors/test_null_columns.py",
        "analyser/detectors/test_partial_captures.py",
        "analyser/detectors/test_properties.py",
        "analyser/detectors/test_told.py",
        "analyser/flows/test_budget.py",
        "analyser/flows/test_flow_limits.py",
        "analyser/flows/test_two_points.py",
        "analyser/flows/test_waits.py",
        "analyser/live/test_session.py",
        "analyser/reading/test_cut_files.py",
        "analyser/reading/test_damage.py",
        "analyser/reading/test_processes.py",
        "analyser/reading/test_same_bytes.py",
        "analyser/reading/test_shares.py",
        "analyser/reading/test_tls.py",
        "analyser/registry/test_rows_and_columns.py",
        "analyser/tables/test_analysis.py",
        "analyser/tables/test_joined.py",
        "analyser/tables/test_order.py",
        "analyser/test_faults.py",
        "app/dashboard/test_ahead.py",
        "app/dashboard/test_broker_files.py",
        "app/dashboard/test_command.py",
        "app/dashboard/test_compare.py",
        "app/dashboard/test_days.py",
        "app/dashboard/test_jobs.py",
        "app/dashboard/test_live.py",
        "app/dashboard/test_opened.py",
        "app/dashboard/test_packets.py",
        "app/dashboard/test_pages.py",
        "app/dashboard/test_queries.py",
        "app/dashboard/test_tables.py",
        "app/dashboard/test_topics.py",
        "app/test_archive.py",
        "app/test_bad_input.py",
        "app/test_commands.py",
        "app/test_control_characters.py",
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
        "app/test_live_rights.py",
        "app/test_loading.py",
        "app/test_otel.py",
        "app/test_planted_secrets.py",
        "app/test_process.py",
        "app/test_processes.py",
        "app/test_query.py",
        "app/test_records.py",
        "app/test_samples.py",
        "app/test_secrets.py",
        "app/test_show.py",
        "app/test_topic_ids.py",
        "bench/test_attacks.py",
        "bench/test_replay.py",
        "bench/test_rules.py",
        "dissectors/carriers/tls/test_unwrapping.py",
        "dissectors/kafka/schema/test_walk.py",
        "dissectors/mongo/test_bson.py",
        "dissectors/mqtt/columns/test_together.py",
        "fuzz/test_fuzz.py",
        "oracle/test_request_log.py",
        "oracle/test_tshark_tls.py",
        "reports/formats/test_text.py",
        "reports/questions/test_differences.py",
        "reports/questions/test_group_states.py",
        "reports/questions/test_groups.py",
        "reports/questions/test_kafka_unseen_commits.py",
        "reports/questions/test_lag_everywhere.py",
        "reports/questions/test_mqtt_topics.py",
        "reports/questions/test_partitions_of_groups.py",
        "reports/sections/test_kafka_groups.py",
        "test_samples.py",
    }
)

# Of these none runs: each starts Spark, which analyser/archive/test_run.py does for all.
NONE = frozenset(
    {
        "analyser/archive/dataset/test_compact.py",
        "analyser/archive/dataset/test_dataset.py",
        "analyser/archive/dataset/test_reading.py",
        "analyser/archive/decode/test_share_decoder.py",
        "analyser/archive/decode/test_source.py",
        "analyser/archive/derive/test_context.py",
        "analyser/archive/derive/test_detectors.py",
        "analyser/archive/derive/test_kafka_context.py",
        "analyser/archive/finish/test_amend.py",
    }
)


def mark_long(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of long files; for a hook that runs before pytest chooses by marks."""
    met = set[Path]()
    for item in items:
        if _is_left_out(item) or not item.path.is_relative_to(TESTS):
            continue
        name = item.path.relative_to(TESTS).as_posix()
        if name in FIRST_ONLY and item.path not in met:
            met.add(item.path)
        elif name in FIRST_ONLY or name in NONE:
            item.add_marker(pytest.mark.exhaustive)


def _is_left_out(item: pytest.Item) -> bool:
    """Does `make test` leave it out anyway?"""
    return any(item.get_closest_marker(mark) for mark in ("lab", "bench", "exhaustive"))
