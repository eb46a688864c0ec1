"""Two clusters in one capture with the same group, topic, client and member names: nothing is shared between them.

The second cluster is the sample again, a moment later, with other addresses and another cluster id; its fault must be
told twice, once for each cluster, with the numbers that each has alone.
"""

from __future__ import annotations

import re

import pandas as pd

from tests.conftest import SAMPLES
from tests.support.packets import Captured
from tests.support.wire import decode, packets_of
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.registry import PROTOCOLS

LATER_NS = 50_000_000
CLUSTER, OTHER = "d2lyZXdpdG5lc3MtbGFiMQ", "d2lyZXdpdG5lc3MtbGFiMg"
# The cluster id and the broker's name as Metadata tells them, and the network of the addresses in the headers.
REPLACED = ((CLUSTER.encode(), OTHER.encode()), (b"10.77.0.", b"10.78.0."), (bytes([10, 77, 0]), bytes([10, 78, 0])))
_TIME = re.compile(r"\d{4}-\d\d-\d\d [\d:.]+ UTC")
KEYS = ["group_id", "topic", "partition", "client_id", "member_id", "generation", "committed_offset", "error_code"]


def elsewhere(packet: Captured) -> Captured:
    data = packet.data
    for old, new in REPLACED:
        data = data.replace(old, new)
    return packet._replace(ts_ns=packet.ts_ns + LATER_NS, data=data)


def tables(packets: list[Captured]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(findings, commits)."""
    with analysis_of(decode(packets, list(TABLES)), list(TABLES), ReadOptions(), PROTOCOLS.values()) as analysis:
        return analysis.findings(), analysis.table("kafka_offset_commits")


def told(findings: pd.DataFrame, cluster: str) -> list[tuple[str, ...]]:
    """Findings about one cluster, without what its addresses, packets and times decide."""
    own = findings[findings["subject"].str.contains(f"cluster={cluster}")]
    columns = own[["code", "severity", "confidence", "subject", "sentence"]].itertuples(index=False, name=None)
    return sorted(
        tuple(_TIME.sub("", text).replace(OTHER, CLUSTER).replace("10.78.0.", "10.77.0.") for text in row)
        for row in columns
    )


def test_clusters_with_the_same_names_do_not_mix() -> None:
    one = packets_of(SAMPLES / "kafka_stale_commit.pcapng")
    both = sorted([*one, *map(elsewhere, one)], key=lambda packet: packet.ts_ns)
    alone, commits_alone = tables(one)
    findings, commits = tables(both)
    expected = told(alone, CLUSTER)
    assert len(expected) == len(alone) > 10
    assert told(findings, CLUSTER) == expected
    assert told(findings, OTHER) == expected
    assert len(findings) == 2 * len(alone)
    for cluster, network in ((CLUSTER, "10.77.0."), (OTHER, "10.78.0.")):
        own = commits[commits["cluster_id"] == cluster].reset_index(drop=True)
        assert own["client_address"].str.startswith(network).all()
        pd.testing.assert_frame_equal(own[KEYS], commits_alone[KEYS])
        context = ["owner_member_id", "ownership_confidence", "log_end_offset"]
        pd.testing.assert_frame_equal(own[context], commits_alone[context])
