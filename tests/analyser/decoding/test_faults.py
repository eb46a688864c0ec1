"""A fault of a dissector or carrier is a remark on its connection; everything else is read as if nothing was."""

from __future__ import annotations

import json
import pickle
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
from wirewitness.analyser.archive.decode.decode_stage import RESULT_FILE, DecodeJob, ShardFolder, decode_shard
from wirewitness.analyser.archive.decode.packets import RangeJob, range_chunks
from wirewitness.analyser.archive.ingest.ranges import find_ranges
from wirewitness.analyser.base.faults import FAULTS, RAISE, TRACE
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureLimits, Source
from wirewitness.analyser.decoding.faults import inspecting
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.app.shared.failure import Status
from wirewitness.dissectors.core.inspect import Asked, Hidden
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.registry import CARRIERS, PROTOCOLS, dissectors

WANTED = ("messages", "exchanges", "expert_infos", "flows")
SECRET = b"s3cret"
READS = "a fault of wirewitness itself, KeyError in what reads faulty: the rest of the connection is not decoded"
# Of BROKEN, those that end so.
LEFT = 7
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


def known_to_helpers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python imports this when it starts, so that the processes that help know the protocol too."""
    (folder / "sitecustomize.py").write_text(
        "from wirewitness.dissectors.registry import CARRIERS, PROTOCOLS\n"
        "from tests.support.faulty import CARRIER, FAULTY\n"
        "PROTOCOLS['faulty'], CARRIERS['tube'] = FAULTY, CARRIER\n"
    )
    monkeypatch.syspath_prepend(str(folder))


def test_shards_of_an_archive_and_several_processes_tell_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = several(tmp_path)
    with wirewitness.read([path]) as one:
        whole, faults = rows_of(one), one.faults
    assert sum(row["code"] == "dissector_bug" for row in whole["expert_infos"]) == len(BROKEN)
    with read_by_shards([path], tmp_path, range_bytes=3000, block_bytes=1000) as shards:
        assert rows_of(shards) == whole
    known_to_helpers(tmp_path, monkeypatch)
    with wirewitness.read([path], options=ReadOptions(processes=2)) as two:
        assert rows_of(two) == whole
        assert sorted(two.faults) == sorted(faults)


def test_a_task_of_an_archive_counts_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise RuntimeError("never")

    monkeypatch.setitem(PROTOCOLS, "mqtt", replace(PROTOCOLS["mqtt"], probe=fails))
    path = tmp_path / "fault.pcap"
    path.write_bytes(pcap(mqtt(), nanoseconds=True))
    source, limits = Source(str(path), path), CaptureLimits()
    (part,) = find_ranges(source, path.stat().st_size, 1 << 40, limits)
    job = DecodeJob(tmp_path, {0: path}, ("flows",), ReadOptions(), None)
    decode_shard(job, 0, range_chunks(RangeJob(0, source, part, 1), limits), tmp_path / "share")
    left: ShardFolder = pickle.loads((tmp_path / "share" / RESULT_FILE).read_bytes())
    ((text, times),) = left.faults.items()
    assert ("RuntimeError in what reads mqtt: the connection is read without mqtt" in text, times) == (True, 1)


def test_the_command_line_goes_on(tmp_path: Path) -> None:
    done = run("table", "expert_infos", several(tmp_path), "--where", "code = 'dissector_bug'", "--format", "csv")
    assert done.returncode == Status.OWN_FAULT
    assert len(done.stdout.splitlines()) == 1 + len(BROKEN)


@pytest.mark.parametrize("form", ["text", "html", "markdown"])
def test_a_report_says_how_many_connections_were_left(tmp_path: Path, form: str) -> None:
    done = run("analyse", several(tmp_path), "--format", form)
    shown = " ".join(done.stdout.decode().split())
    assert done.returncode == Status.OWN_FAULT
    assert (f"{LEFT} connections: {READS}" in shown, "with the trace that --debug shows" in shown) == (True, True)
    assert "1 connection: a fault of wirewitness itself, KeyError in what reads tube" in shown
    assert "Something is missing here by a fault of wirewitness itself" in shown


def test_json_counts_faults(tmp_path: Path) -> None:
    document = json.loads(run("analyse", several(tmp_path), "--format", "json").stdout)
    counts = {one["text"].partition(";")[0]: one["connections"] for one in document["quality"]["faults"]}
    assert sum(counts.values()) == len(BROKEN)
    assert counts[READS] == LEFT
    assert any(text.startswith(f"{LEFT} times {READS}") for text in document["faults"])


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["table", "exchanges"], id="a table without remarks"),
        pytest.param(["findings"], id="findings"),
        pytest.param(["analyse", "--protocol", "mqtt"], id="another protocol"),
        pytest.param(["live", "-r"], id="live"),
        pytest.param(["live", "--format", "jsonl", "-r"], id="live as lines"),
        pytest.param(["table", "exchanges", "--processes", "2"], id="two processes"),
    ],
)
def test_a_fault_is_said_by_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    known_to_helpers(tmp_path, monkeypatch)
    done = run(*words, several(tmp_path), "--quiet")
    assert done.returncode == Status.OWN_FAULT
    lines = [line for line in done.stderr.decode().splitlines() if "times" in line]
    assert [line.startswith(f"wirewitness: {LEFT} times {READS}") for line in lines] == [True]
    assert SECRET not in done.stderr + done.stdout


def test_what_failed_is_not_called_unknown(tmp_path: Path) -> None:
    path = tmp_path / "faults.pcap"
    path.write_bytes(pcap(mixed(talk(BROKEN["probe"], 40000), talk(BROKEN["opening"], 40001)), nanoseconds=True))
    done = run("analyse", path)
    shown = " ".join(done.stdout.decode().split())
    assert done.returncode == Status.OWN_FAULT
    assert "on 2 of them wirewitness itself failed: what they speak is not known" in shown
    assert ("--decode-as" in shown, "every message decoded" in shown) == (False, False)


def test_a_message_that_cannot_be_looked_into_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROTOCOLS, "faulty", replace(FAULTY, may_hide=lambda _: True))
    path = tmp_path / "faults.pcap"
    path.write_bytes(pcap(talk(steps(b"!inspect"), 40000), nanoseconds=True))
    found = run("table", "messages", path, "--columns", "message_id,flow_id", "--format", "jsonl")
    assert found.returncode == Status.DONE
    ids = [json.loads(line) for line in found.stdout.splitlines()]
    shown = [run("show", path, one["message_id"], "--no-index") for one in ids]
    (done,) = (one for one in shown if one.returncode)
    assert (done.returncode, b"a fault of wirewitness itself" in done.stderr) == (Status.OWN_FAULT, True)
    out = tmp_path / "out.pcapng"
    done = run("extract", path, "--flow", ids[0]["flow_id"], "--redact", "-o", out, "--no-index")
    assert (done.returncode, b"a fault of wirewitness itself" in done.stderr) == (Status.OWN_FAULT, True)
    assert SECRET not in out.read_bytes()


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


@pytest.mark.parametrize("what", ["framer", "decoder"])
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

    monkeypatch.setitem(PROTOCOLS, "faulty", replace(FAULTY, probe=fails, ports=(1883,)))
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
