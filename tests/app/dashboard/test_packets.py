"""Messages and evidence read from captures by what the kept tables say, without decoding them again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.captures import write_capture
from tests.conftest import SAMPLES
from wirewitness.analyser.analysis.evidence.bytes import message_bytes
from wirewitness.analyser.analysis.evidence.index import open_index
from wirewitness.analyser.analysis.evidence.rows import parse_message_id
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures
from wirewitness.app.dashboard import evidence
from wirewitness.app.dashboard.jobs import key_of
from wirewitness.app.dashboard.opened import Opened
from wirewitness.app.dashboard.packets import NoPackets, exchange_views, gone_captures, packet_index
from wirewitness.app.dashboard.worker import keep_tables


def analysed(*paths: Path) -> Opened:
    given = [str(path) for path in paths]
    return Opened.kept(keep_tables(given, {}, key_of(given, {})))


def ids(opened: Opened, condition: str = "true") -> list[str]:
    query = f"SELECT message_id FROM messages WHERE complete AND {condition} ORDER BY ts, message_id"
    return [str(name) for name in opened.sql(query).column(0).to_pylist()]


@pytest.mark.parametrize("name", ["mongo_healthy", "mqtt_websocket"])
def test_tables_name_the_same_bytes_as_an_index(name: str) -> None:
    path = SAMPLES / f"{name}.pcapng"
    opened = analysed(path)
    sources = open_captures([str(path)])
    with open_index(sources, ReadOptions(), use_cache=False) as decoded, packet_index(opened) as told:
        names = ids(opened)[::9]
        assert len(names) > 5
        for one in names:
            rows = [index.message(parse_message_id(one)) for index in (decoded, told)]
            assert rows[0] == rows[1]
            assert decoded.partner(rows[0]) == told.partner(rows[0])
            assert decoded.end_of(rows[0].flow) == told.end_of(rows[0].flow)
            bytes_of = [message_bytes(rows[0], index.sources, index.places) for index in (decoded, told)]
            assert bytes_of[0] == bytes_of[1]


def test_a_capture_that_is_gone_takes_nothing_from_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    for name, port in (("a", 9092), ("b", 9093)):
        write_capture(folder / f"{name}.pcap", server_port=port)
    opened = analysed(folder)
    first, other = (ids(opened, f"file LIKE '%{name}.pcap'")[0] for name in "ab")
    (folder / "b.pcap").write_bytes(b"no capture any more")
    assert exchange_views(opened, first, payload=False)[0].row.message_id().text() == first
    with pytest.raises(NoPackets, match=r"b\.pcap"):
        exchange_views(opened, other, payload=False)
    (folder / "b.pcap").unlink()
    assert exchange_views(opened, first, payload=False)
    with pytest.raises(NoPackets, match=r"b\.pcap"):
        exchange_views(opened, other, payload=False)


def test_captures_that_are_gone_are_named(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "a.pcap")
    opened = analysed(path)
    assert gone_captures(opened, [str(path)]) == []
    path.unlink()
    assert gone_captures(opened, [str(path)]) == [str(path)]


def test_evidence_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = analysed(SAMPLES / "mqtt_takeover_loop.pcapng")
    finding = opened.sql("SELECT finding_id, evidence FROM findings ORDER BY finding_id LIMIT 1").to_pylist()[0]
    told = json.loads(finding["evidence"])
    whole = evidence.evidence_packets(opened, finding["finding_id"], told, redact=False)
    assert whole.startswith(b"\x0a\x0d\x0d\x0a")
    monkeypatch.setattr(evidence, "MOST_BYTES", len(whole) - 1)
    with pytest.raises(evidence.TooLarge, match=finding["finding_id"]):
        evidence.evidence_packets(opened, finding["finding_id"], told, redact=False)
