"""Several inputs at once: taken in the order of time, whatever order they were named in."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import wirewitness
from tests.conftest import SAMPLES
from tests.support.packets import pcap
from tests.support.wire import packets_of

# A packet is named by its file; everything else must not show where the capture was cut.
PLACES = ["request_file", "request_packet", "response_packet"]


def exchanges(paths: list[Path]) -> pd.DataFrame:
    with wirewitness.read(paths, tables=["exchanges"]) as analysis:
        return analysis.table("exchanges").drop(columns=PLACES)


def test_rotated_files_are_one_capture_in_any_order(tmp_path: Path) -> None:
    packets = packets_of(SAMPLES / "kafka_healthy.pcapng")
    files = []
    for part in range(4):
        first, last = (len(packets) * part // 4, len(packets) * (part + 1) // 4)
        files.append(tmp_path / f"part{part}.pcap")
        files[-1].write_bytes(pcap(packets[first:last], nanoseconds=True))
    whole = exchanges([SAMPLES / "kafka_healthy.pcapng"])
    pd.testing.assert_frame_equal(exchanges(files), whole)
    pd.testing.assert_frame_equal(exchanges([files[2], files[0], files[3], files[1]]), whole)
    pd.testing.assert_frame_equal(exchanges([tmp_path]), whole)
