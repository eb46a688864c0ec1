"""Stored offsets in a report: what stands, what went back, and what does not count."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import wirewitness
from tests.support.packets import pcap
from tests.support.segments import commits, end_of_transaction, segment, write_segment
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.protocols.kafka.questions.stored_offsets import stored_offsets
from wirewitness.reports.report.contents import report
from wirewitness.reports.report.json_document import json_pieces

OFFSETS = "__consumer_offsets-7"


def told(*paths: Path) -> list[tuple[Any, ...]]:
    """group, partition, offset, times stored, times back, from, to."""
    with wirewitness.read(list(paths)) as analysis:
        return [
            (one.group_id, one.partition, one.committed_offset, one.stored, one.went_back, one.back_from, one.back_to)
            for one in stored_offsets(analysis)
        ]


def test_what_stands_and_what_went_back(tmp_path: Path) -> None:
    data = segment(
        (0, commits(10, 20, 15, 30)), (4, commits(30, 12, 40, group="late")), (7, commits(5, 5, 6, partition=1))
    )
    path = write_segment(tmp_path, OFFSETS, data)
    assert told(path) == [("g", 0, 30, 4, 1, 20, 15), ("late", 0, 40, 3, 1, 30, 12), ("g", 1, 6, 3, 0, None, None)]
    with wirewitness.read(path) as analysis:
        text = render(report(analysis), 200)
        document = json.loads(b"".join(json_pieces(analysis)))
    assert (
        "Brokers stored offsets of 3 partitions of groups. On 2 partitions the offset went back, twice in all" in text
    )
    assert "1 (30 to 12)" in text
    assert [one["committed_offset"] for one in document["stored_offsets"]] == [30, 40, 6]


def test_a_later_segment_goes_on_where_the_one_before_it_ended(tmp_path: Path) -> None:
    first = write_segment(tmp_path, OFFSETS, segment((0, commits(10, 20))))
    second = write_segment(tmp_path, OFFSETS, segment((2, commits(15))), 2)
    assert told(second, first) == [("g", 0, 15, 3, 1, 20, 15)]


def test_copies_on_other_brokers_count_once_and_do_not_mix(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "broker1", OFFSETS, segment((0, commits(10, 20, 30))))
    (tmp_path / "broker2" / OFFSETS).mkdir(parents=True)
    shutil.copy(path, tmp_path / "broker2" / OFFSETS / path.name)
    write_segment(tmp_path / "another cluster", OFFSETS, segment((0, commits(5, 6))))
    assert told(tmp_path) == [("g", 0, 6, 2, 0, None, None), ("g", 0, 30, 3, 0, None, None)]


def test_aborted_and_deleted_offsets_are_nothing_to_go_back_from(tmp_path: Path) -> None:
    data = segment(
        (0, commits(50, producer=1)),
        (1, end_of_transaction(1, commit=False)),
        (2, commits(10, None, 3)),
        (5, commits(2, producer=1)),
    )
    assert told(write_segment(tmp_path, OFFSETS, data)) == [("g", 0, 3, 2, 0, None, None)]
    data = segment((0, commits(50)), (1, commits(40, producer=1)), (2, end_of_transaction(1, commit=True)))
    assert told(write_segment(tmp_path / "x", OFFSETS, data)) == [("g", 0, 40, 2, 1, 50, 40)]


def test_a_deleted_offset_says_so(tmp_path: Path) -> None:
    with wirewitness.read(write_segment(tmp_path, OFFSETS, segment((0, commits(10, None))))) as analysis:
        assert "deleted" in render(report(analysis), 200)


def test_a_capture_has_no_such_section(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(pcap([]))
    with wirewitness.read(path) as analysis:
        assert "STORED OFFSETS" not in render(report(analysis), 200)


def test_offsets_that_somebody_made_up_are_compared(tmp_path: Path) -> None:
    least, most = -(2**63), 2**63 - 1
    path = write_segment(tmp_path, OFFSETS, segment((0, commits(most, least, 7))))
    assert told(path) == [("g", 0, 7, 3, 1, most, least)]
