"""Looking up messages in a dataset finds the packets that looking them up in its captures finds."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from tests.support.rotated import rotated
from tests.support.wire import packets_of, resegmented
from wirewitness.analyser.analysis.evidence.bytes import message_bytes
from wirewitness.analyser.analysis.evidence.index import open_index
from wirewitness.analyser.archive.dataset.index import open_dataset_index
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import in_time_order, open_captures
from wirewitness.dissectors.core.model import split_packet


def test_messages_over_several_files(tmp_path: Path) -> None:
    """Small segments in small files: a message begins one or more files before the one that completes it, at a lower
    number as often as at a higher one. Where the tables leave several files open it is the earliest."""
    packets = resegmented(packets_of(SAMPLES / "mongo_healthy.pcapng"), 90)
    sources = in_time_order(open_captures([str(path) for path in rotated(packets, tmp_path / "captures", 60)]))
    captures = [source.path for source in sources if source.path is not None]
    dataset = make_dataset(tmp_path / "dataset", captures, ["captures", "flows", "messages", "exchanges"])
    spans, early = [], []
    with open_index(sources, ReadOptions(), use_cache=False) as offline, open_dataset_index(dataset) as kept:
        assert kept.flows() == offline.flows()
        for flow in kept.flows():
            for row, expected in zip(kept.of_flow(flow), offline.of_flow(flow), strict=True):
                assert row._replace(packet_first=expected.packet_first) == expected
                assert row.packet_first <= expected.packet_first
                (first_file, first), (last_file, last) = map(split_packet, (expected.packet_first, row.packet_last))
                spans.append((last_file - first_file, first <= last))
                early.append(row.packet_first < expected.packet_first)
                if spans[-1] > (0, True):
                    assert kept.message(row.message_id()) == row
                    assert (
                        message_bytes(row, kept.sources, kept.places).data
                        == message_bytes(expected, offline.sources, offline.places).data
                    )
    assert {(0, True), (1, True), (1, False)} <= {*spans}
    assert max(files for files, _ in spans) > 1
    assert sum(early) < len(early) / 2
