"""A fault of a dissector or carrier is a remark on its connection; everything else is read as if nothing was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wirewitness
from tests.app.program import run
from tests.support.by_shards import read_by_shards
from tests.support.example_encode import request, response
from tests.support.faulty import CARRIER, FAULTY, TUBE
from tests.support.mqtt_encode import connack, connect, publish
from tests.support.packets import ACK, FIN, Captured, ethernet, pcap
from tests.support.wire import Talk, decode
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.base.faults import FAULTS, RAISE, TRACE
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.decoding.faults import inspecting
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.inspect import Asked, Hidden
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.registry import CARRIERS, PROTOCOLS, dissectors

WANTED = ("messages", "exchanges", "expert_infos", "flows")
SECRET = b"s3cret"
# Who sends it, what: None is lost.
Step = tuple[bool, bytes | None]


@pytest.fixture(autouse=True)
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROTOCOLS, "faulty", FAULTY)
    monkeypatch.setitem(CARRIERS, "tube", CARRIER)
    monkeypatch.setenv(FAULTS, "")


def steps(mark: bytes, *, loses: bool = False, tube: bool = False) -> list[Step]:
    """Calls before the mark, the mark in the middle, calls behind it, of both sides."""
    calls: list[Step] = [(number % 2 == 0, (request, response)[number % 2](b"%d" % number)) for number in range(12)]
    marked: list[Step] = [(True, request(mark + SECRET)), (False, response(b"yes"))]
    lost: list[Step] = [(True, None)] if loses else []
    if tube:
        calls[0] = (True, TUBE + request(b"the first one"))
    return calls[:4] + lost + marked + calls[4:]


def first_is(mark: bytes, *, tube: bool = False) -> list[Step]:
    """The mark in the first bytes."""
    return [(True, (TUBE if tube else b"") + request(mark + SECRET)), *steps(b"")]


BROKEN: dict[str, list[Step]] = {
    "framer": steps(b"!framer"),
    "framer behind a loss": steps(b"!framer", loses=True),
    "feed": steps(b"!feed"),
    "feed behind a loss": steps(b"!feed", loses=True),
    "boundary": steps(b"!boundary", loses=True),
    "lost": [*steps(b"!lost"), *steps(b"", loses=True)],
    "finish": steps(b"!finish"),
    "probe": first_is(b"!probe"),
    "carrier": steps(b"!carrier", tube=True),
    "opening": first_is(b"!opening", tube=True),
}


def talk(decoder: Sequence[Step], port: int) -> list[Captured]:
    """Several segments in a row are sent without waiting; a lost one has 30 bytes."""
    made = Talk(client=("10.0.0.1", port), server=("10.0.0.2", 7070)).handshake()
    sent = [0, 0]
    for from_client, data in decoder:
        if data is not None:
            for piece in (data[:5], data[5:]):
                made.send(from_client, sent[from_client], piece, ack=sent[not from_client])
                sent[from_client] += len(piece)
        else:
            sent[from_client] += 30
            made.send(not from_client, sent[not from_client], flags=ACK, ack=sent[from_client])
    made.send(True, sent[True], flags=FIN | ACK, ack=sent[False])
    return made.send(False, sent[False], flags=FIN | ACK, ack=sent[True] + 1).packets


def mqtt() -> list[Captured]:
    """A connection of another protocol."""
    made = Talk(client=("10.0.0.1", 50000), server=("10.0.0.2", 1883)).handshake()
    first = connect()
    made.send(True, 0, first).send(False, 0, connack(), ack=len(first))
    for number in range(6):
        made.send(True, len(first) + number * len(publish("t", b"x")), publish("t", b"x"))
    return made.packets


def mixed(*talks: Sequence[Captured]) -> list[Captured]:
    """Packet by packet in turn."""
    longest = max(map(len, talks))
    return [packets[at] for at in range(longest) for packets in talks if at < len(packets)]


def rows(packets: Sequence[Captured], block_bytes: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    decoded = decode(packets, TABLES, block_bytes=block_bytes)
    with analysis_of(decoded, TABLES, ReadOptions(), dissectors().values()) as analysis:
        return rows_of(analysis)


def rows_of(analysis: Analysis) -> dict[str, list[dict[str, Any]]]:
    return {name: analysis.arrow(name).to_pylist() for name in WANTED}


def of_others(found: dict[str, list[dict[str, Any]]], flow: str | None) -> dict[str, list[dict[str, Any]]]:
    return {name: [row for row in table if row["flow_id"] != flow] for name, table in found.items()}


@pytest.mark.parametrize("name", BROKEN)
def test_one_remark_and_the_rest_is_read(name: str) -> None:
    bad, good = talk(BROKEN[name], 40000), talk(steps(b""), 41000)
    found = rows(mixed(bad, good, mqtt()))
    (bug,) = (row for row in found["expert_infos"] if row["code"] == "dissector_bug")
    assert bug["severity"] == "error"
    assert "KeyError" in bug["text"]
    assert ("faulty" in bug["text"]) or ("tube" in bug["text"])
    assert SECRET.decode() not in bug["text"]
    instead = [Captured(packet.ts_ns, ethernet(bytes(40), 0x88B5)) for packet in bad]
    without = rows(mixed(instead, good, mqtt()))
    assert len(without["messages"]) == 14 + 8
    assert of_others(found, bug["flow_id"]) == of_others(without, None)


@pytest.mark.parametrize("name", BROKEN)
def test_any_split_gives_the_same_rows(name: str) -> None:
    packets = mixed(talk(BROKEN[name], 40000), talk(steps(b""), 41000))
    whole = rows(packets)
    assert any(row["code"] == "dissector_bug" for row in whole["expert_infos"])
    for block_bytes in (100, 333, 1000, 2500):
        assert rows(packets, block_bytes) == whole


def several(folder: Path) -> Path:
    """A capture with a connection for each fault."""
    path = folder / "faults.pcap"
    talks = [talk(decoder, 40000 + number) for number, decoder in enumerate(BROKEN.values())]
    path.write_bytes(pcap(mixed(*talks, mqtt()), nanoseconds=True))
    return path


def test_shards_of_an_archive_and_several_processes_tell_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = several(tmp_path)
    with wirewitness.read([path]) as one:
        whole = rows_of(one)
    assert sum(row["code"] == "dissector_bug" for row in whole["expert_infos"]) == len(BROKEN)
    with read_by_shards([path], tmp_path, range_bytes=3000, block_bytes=1000) as shards:
        assert rows_of(shards) == whole
    # Python imports this when it starts, so that the processes that help know the protocol too.
    (tmp_path / "sitecustomize.py").write_text(
        "from wirewitness.dissectors.registry import CARRIERS, PROTOCOLS\n"
        "from tests.support.faulty import CARRIER, FAULTY\n"
        "PROTOCOLS['faulty'], CARRIERS['tube'] = FAULTY, CARRIER\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with wirewitness.read([path], options=ReadOptions(processes=2)) as two:
        assert rows_of(two) == whole


def test_the_command_line_goes_on(tmp_path: Path) -> None:
    done = run("table", "expert_infos", several(tmp_path), "--where", "code = 'dissector_bug'", "--format", "csv")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1 + len(BROKEN)


def test_what_was_decoded_before_stays_and_what_was_open_is_not_told() -> None:
    found = rows(talk([(True, request(b"open")), *steps(b"!feed")], 40000))
    (bug,) = (row for row in found["expert_infos"] if row["code"] == "dissector_bug")
    assert len(found["messages"]) == 5
    assert [row["status"] for row in found["exchanges"]] == ["ok", "ok"]
    assert "the rest of the connection is not decoded" in bug["text"]


def test_gaps_behind_a_fault_are_told() -> None:
    found = rows(talk([*steps(b"!feed"), (True, None), *steps(b"")], 40000))
    assert [row["code"] for row in found["expert_infos"] if row["code"] in ("gap", "skipped_bytes")] == ["gap"]


def test_a_packet_is_named_where_it_is_known() -> None:
    packets = talk(BROKEN["framer"], 40000)
    (bug,) = (row for row in rows(packets)["expert_infos"] if row["code"] == "dissector_bug")
    assert b"!framer" in packets[bug["packet"] - 1].data


@pytest.mark.parametrize("what", ["framer", "conversation"])
def test_what_cannot_even_begin(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("never")

    monkeypatch.setitem(PROTOCOLS, "faulty", replace(FAULTY, **{what: fails}))
    found = rows(mixed(talk(steps(b""), 40000), talk(steps(b""), 41000), mqtt()))
    assert [row["code"] for row in found["expert_infos"]] == ["dissector_bug"] * 2
    assert {row["protocol"] for row in found["messages"]} == {"mqtt"}


def test_a_protocol_whose_probe_fails_leaves_the_flow_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise RuntimeError("never")

    monkeypatch.setitem(PROTOCOLS, "faulty", replace(FAULTY, probe=fails))
    found = rows(mqtt())
    assert len(found["messages"]) == 8
    (bug,) = (row for row in found["expert_infos"] if row["code"] == "dissector_bug")
    assert "the connection is read without faulty" in bug["text"]


@pytest.mark.parametrize("name", BROKEN)
def test_tests_see_the_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULTS, RAISE)
    with pytest.raises(KeyError):
        rows(talk(BROKEN[name], 40000))


def test_the_trace_is_shown_when_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(FAULTS, TRACE)
    rows(talk(BROKEN["feed"], 40000))
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert shown.count("Traceback") == 1
    assert "KeyError" in shown


def test_a_message_that_cannot_be_looked_into_is_kept_back(monkeypatch: pytest.MonkeyPatch) -> None:
    data, asked = request(b"!inspect" + SECRET), Asked("request", None, "1")
    found = inspecting(FAULTY.inspect)(data, asked, DecodeOptions(payload=True))
    assert found.hidden == [Hidden(0, len(data), "secret")]
    assert "KeyError" in (found.error or "")
    assert found.nodes[0].value is None
    monkeypatch.setenv(FAULTS, RAISE)
    with pytest.raises(KeyError):
        inspecting(FAULTY.inspect)(data, asked, DecodeOptions())
