"""The table of contents of all detectors: one line each, in the order in which they run.

`run_detectors` runs them on a connection whose views are enriched by `analyser/context`; the page of a detector is
the docstring of its module (`DETECTORS[code].page`).
"""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from analyser.detectors.capture import (
    cap101_gaps,
    cap102_one_sided_flows,
    cap103_snaplen_cuts,
    cap104_doubled_packets,
    cap105_kernel_drops,
    cap106_encrypted_share,
    cap107_undecoded_messages,
    cap108_clocks,
)
from analyser.detectors.findings import Finding
from analyser.detectors.framework import Detector, Failure, run
from analyser.detectors.kafka import (
    kaf101_dual_committer,
    kaf102_stuck_committer,
    kaf103_offset_regression,
    kaf104_non_owner_commit,
    kaf105_fenced_commits,
    kaf106_simple_consumer,
    kaf118_commit_rejected,
    kaf307_corrupt_batch,
)
from analyser.detectors.mongo import (
    mon101_slow_command,
    mon102_command_error,
    mon103_unanswered,
    mon104_cursor_leak,
    mon105_n_plus_one,
    mon106_streaming_hello,
    mon107_connection_churn,
    mon108_framing,
    mon109_compression,
    mon110_legacy_opcode,
    mon111_transaction_open,
    mon112_retried_write,
    mon113_large_reply,
)
from analyser.detectors.mqtt import (
    mqt101_not_connected,
    mqt102_takeover_loop,
    mqt103_keep_alive,
    mqt104_ping_unanswered,
    mqt105_qos_incomplete,
    mqt106_dup_misuse,
    mqt107_resend,
    mqt108_in_flight,
    mqt109_packet_too_large,
    mqt110_topic_alias,
    mqt111_refused,
    mqt112_bad_topic,
    mqt113_packet_id,
    mqt114_will_fires,
    mqt115_undelivered,
    mqt116_retained_storm,
    mqt117_malformed,
)
from analyser.detectors.tcp import (
    tcp101_retransmissions,
    tcp102_zero_window,
    tcp103_reset,
    tcp104_handshake,
    tcp105_delayed_ack,
    tcp106_window_limited,
)

DETECTORS: dict[str, Detector] = {
    detector.code: detector
    for detector in (
        cap101_gaps.DETECTOR,
        cap102_one_sided_flows.DETECTOR,
        cap103_snaplen_cuts.DETECTOR,
        cap104_doubled_packets.DETECTOR,
        cap105_kernel_drops.DETECTOR,
        cap106_encrypted_share.DETECTOR,
        cap107_undecoded_messages.DETECTOR,
        cap108_clocks.DETECTOR,
        kaf307_corrupt_batch.DETECTOR,
        tcp101_retransmissions.DETECTOR,
        tcp102_zero_window.DETECTOR,
        tcp103_reset.DETECTOR,
        tcp104_handshake.DETECTOR,
        tcp105_delayed_ack.DETECTOR,
        tcp106_window_limited.DETECTOR,
        kaf101_dual_committer.DETECTOR,
        kaf102_stuck_committer.DETECTOR,
        kaf103_offset_regression.DETECTOR,
        kaf104_non_owner_commit.DETECTOR,
        kaf105_fenced_commits.DETECTOR,
        kaf106_simple_consumer.DETECTOR,
        kaf118_commit_rejected.DETECTOR,
        mqt101_not_connected.DETECTOR,
        mqt102_takeover_loop.DETECTOR,
        mqt103_keep_alive.DETECTOR,
        mqt104_ping_unanswered.DETECTOR,
        mqt105_qos_incomplete.DETECTOR,
        mqt106_dup_misuse.DETECTOR,
        mqt107_resend.DETECTOR,
        mqt108_in_flight.DETECTOR,
        mqt109_packet_too_large.DETECTOR,
        mqt110_topic_alias.DETECTOR,
        mqt111_refused.DETECTOR,
        mqt112_bad_topic.DETECTOR,
        mqt113_packet_id.DETECTOR,
        mqt114_will_fires.DETECTOR,
        mqt115_undelivered.DETECTOR,
        mqt116_retained_storm.DETECTOR,
        mqt117_malformed.DETECTOR,
        mon101_slow_command.DETECTOR,
        mon102_command_error.DETECTOR,
        mon103_unanswered.DETECTOR,
        mon104_cursor_leak.DETECTOR,
        mon105_n_plus_one.DETECTOR,
        mon106_streaming_hello.DETECTOR,
        mon107_connection_churn.DETECTOR,
        mon108_framing.DETECTOR,
        mon109_compression.DETECTOR,
        mon110_legacy_opcode.DETECTOR,
        mon111_transaction_open.DETECTOR,
        mon112_retried_write.DETECTOR,
        mon113_large_reply.DETECTOR,
    )
}


def run_detectors(
    con: duckdb.DuckDBPyConnection,
    codes: Iterable[str] | None = None,
    failures: list[Failure] | None = None,
) -> list[Finding]:
    """Findings of the detectors with these codes (None: all), on views named like the registered tables.

    A detector that raises costs its findings of that one partition and is added to `failures`; without such a list
    the error is raised. KeyError for an unknown code.
    """
    chosen = list(DETECTORS.values()) if codes is None else [DETECTORS[code] for code in codes]
    return run(con, chosen, failures)


def tables_needed(codes: Iterable[str] | None = None) -> frozenset[str]:
    """Tables that these detectors read (None: all detectors). KeyError for an unknown code."""
    chosen = list(DETECTORS.values()) if codes is None else [DETECTORS[code] for code in codes]
    return frozenset(table for detector in chosen for table in detector.reads)
