"""`wirewitness crosscheck`: agreement, disagreement with a tshark that lies, and what can go wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
from pathlib import Path

import pytest

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support import mqtt_encode as mqtt
from tests.support.datasets import make_dataset
from tests.support.packets import pcap
from tests.support.planted import decoder
from tests.support.tls_twin import TLS_13, Sides, twin
from tests.support.wire import packets_of

MQTT = SAMPLES / "mqtt_qos2_stuck.pcapng"
MONGO = SAMPLES / "mongo_show_databases.pcapng"
ENHANCED_PACKET = 6


def liar(folder: Path, tshark: str, change: str) -> str:
    """A search path on which tshark is a program that changes what the real one prints."""
    program = folder / "tshark"
    program.write_text(
        f"#!/bin/sh\ncase \"$*\" in *-T*) '{tshark}' \"$@\" | sed '{change}';; *) '{tshark}' \"$@\";; esac\n"
    )
    program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_agreement(tshark: str) -> None:
    done = run("crosscheck", MQTT, MONGO, "--fail-on", "disagreement", COLUMNS="110")
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert text.startswith("228 messages compared with tshark ")
    assert "228 agree, 0 differ" in text
    assert "none disagrees" in text
    assert "DISAGREEMENTS" not in text


def test_one_protocol_and_time_as_json(tshark: str, tmp_path: Path) -> None:
    place = tmp_path / "check.json"
    done = run("crosscheck", MQTT, MONGO, "--protocol", "mongo", "--format", "json", "--output", place)
    assert (done.returncode, done.stdout) == (0, b"")
    found = json.loads(place.read_text())
    assert (found["agree"], found["disagree"], found["disagreements"]) == (32, 0, [])
    assert {one["protocol"] for one in found["operations"]} == {"mongo"}
    assert sum(one["agree"] for one in found["operations"]) == 32
    assert {"protocol": "mongo", "value": "database", "count": 16} in found["values_compared"]


def test_several_key_logs(tshark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the keys of some connections; tshark gets those of all, and nothing of them is left behind."""
    sides = Sides(TLS_13)
    capture, left = tmp_path / "tls.pcap", tmp_path / "left"
    left.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(left))
    capture.write_bytes(pcap(twin(packets_of(MONGO), sides)[0], nanoseconds=True))
    by_random: dict[bytes, list[bytes]] = {}
    for line in sides.keylog.splitlines():
        by_random.setdefault(line.split()[1], []).append(line)
    logs = [tmp_path / f"{number}.log" for number in range(len(by_random))]
    for log, lines in zip(logs, by_random.values(), strict=True):
        log.write_bytes(b"\n".join(lines))
    assert len(logs) > 1
    keys = [word for log in logs for word in ("--keylog", log)]
    done = run("crosscheck", capture, *keys, "--format", "json", "--fail-on", "disagreement")
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert (found["agree"], found["disagree"]) == (32, 0)
    assert not any("key log" in remark for remark in found["remarks"])
    assert [*left.iterdir()] == []


KAFKA = SAMPLES / "kafka_admin.pcapng"
LIES = {
    "a value": (MQTT, 's/"mqtt.topic": "[^"]*"/"mqtt.topic": "elsewhere"/', "differ", {"topic", "filters"}),
    "a size": (MQTT, 's/"mqtt.len": "2"/"mqtt.len": "3"/', "differ", {"length_bytes"}),
    "a missing message": (MQTT, 's/"mqtt.hdrflags": "0x50"/"mqtt.other": "0x50"/', "only_wirewitness", set()),
    # Messages that are too new for it, so that only their heads are compared.
    "an id": (KAFKA, 's/"kafka.correlation_id": "7"/"kafka.correlation_id": "8"/', "differ", {"number"}),
    "a database": (MONGO, 's/"mongo.element.value.string": "admin"/"mongo.element.value.string": "a"/', "differ",
                   {"database"}),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_disagreement_shows_both_sides(lie: str, tshark: str, tmp_path: Path) -> None:
    capture, change, kind, names = LIES[lie]
    path = liar(tmp_path, tshark, change)
    done = run("crosscheck", capture, "--format", "json", "--fail-on", "disagreement", PATH=path)
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["disagree"] == len(found["disagreements"]) > 0
    assert {one["kind"] for one in found["disagreements"]} == {kind}
    assert {value["name"] for one in found["disagreements"] for value in one["values"]} == names


def test_disagreement_for_people(tshark: str, tmp_path: Path) -> None:
    path = liar(tmp_path, tshark, 's/"mqtt.topic": "[^"]*"/"mqtt.topic": "elsewhere"/')
    done = run("crosscheck", MQTT, PATH=path, COLUMNS="110")
    assert done.returncode == 0  # --fail-on is not asked for
    text = done.stdout.decode()
    assert "DISAGREEMENTS" in text
    assert re.search(r"where +\S+mqtt_qos2_stuck.pcapng\s+packet\s+\d+,\s+message\s+[0-9a-f]{16}-[cs]-\d+", text)
    assert re.search(r"topic +wirewitness \S+, tshark elsewhere", text)


def test_without_tshark(tmp_path: Path) -> None:
    done = run("crosscheck", MQTT, PATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stdout == b""
    [line] = done.stderr.decode().splitlines()
    assert line.startswith("wirewitness: tshark is not installed: apt-get install tshark")


def test_a_file_that_tshark_does_not_read(tshark: str, tmp_path: Path) -> None:
    path = tmp_path / "bin"
    path.mkdir()
    program = path / "tshark"
    program.write_text(
        f"#!/bin/sh\ncase \"$*\" in *-T*) echo 'tshark: no.' >&2; exit 2;; *) '{tshark}' \"$@\";; esac\n"
    )
    program.chmod(0o755)
    done = run("crosscheck", MQTT, PATH=f"{path}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == 3
    assert f"wirewitness: tshark cannot read {MQTT}: no." in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_a_capture_that_is_cut_short(tshark: str, tmp_path: Path) -> None:
    """Both read it up to there."""
    path = tmp_path / "cut.pcapng"
    path.write_bytes(MQTT.read_bytes()[:-50])
    done = run("crosscheck", path, "--fail-on", "disagreement")
    assert done.returncode == 0, done.stderr
    assert b"none disagrees" in done.stdout.replace(b"\n", b" ")
    assert f"note: tshark cannot read {path}: The file" in done.stderr.decode()


def test_a_capture_that_is_damaged_in_the_middle(tshark: str, tmp_path: Path) -> None:
    """tshark reads it up to there, we go on behind."""
    path = tmp_path / "damaged.pcapng"
    data = bytearray(MQTT.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(400)
    path.write_bytes(data)
    done = run("crosscheck", path, "--fail-on", "disagreement", "--format", "json")
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert [reason["code"] for reason in found["reasons"] if reason["count"] > 10] == ["damaged_file"]
    assert found["agree"] > 10


def test_a_tshark_that_dies(tshark: str, tmp_path: Path) -> None:
    path = liar(tmp_path, tshark, "5q")
    program = tmp_path / "tshark"
    program.write_text(program.read_text().replace("| sed '5q'", ">/dev/null; kill -9 $$"))
    done = run("crosscheck", MQTT, PATH=path)
    assert done.returncode == 3
    assert f"wirewitness: tshark cannot read {MQTT}: it ended with status -9" in done.stderr.decode()


def test_standard_input_is_refused(tshark: str) -> None:
    done = run("crosscheck", "-", stdin=MQTT.read_bytes())
    assert done.returncode == 2
    assert done.stderr.decode().strip().endswith("which a pipe cannot: write it to a file first")


def test_names_that_are_no_utf8(tshark: str, tmp_path: Path) -> None:
    place = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.pcapng")
    shutil.copy(MONGO, place)
    done = run("crosscheck", place, "--fail-on", "disagreement")
    assert done.returncode == 0, done.stderr
    assert b"32 agree" in done.stdout


def test_disagreements_with_all_that_tshark_says(tshark: str, tmp_path: Path) -> None:
    """The lie is in what it prints for the comparison only."""
    change = 's/"mqtt.topic": "[^"]*"/"mqtt.topic": "elsewhere"/'
    done = run("crosscheck", MQTT, "--format", "json", "--fields", PATH=liar(tmp_path, tshark, change))
    assert done.returncode == 0, done.stderr
    first, *_, last = json.loads(done.stdout)["disagreements"]
    [topic] = [value for value in first["values"] if value["name"] == "filters"]
    assert topic["tshark"] == ["elsewhere", "elsewhere"]
    assert {f"  Topic: {name}" for name in topic["wirewitness"]} <= set(first["tshark_fields"])
    assert last["tshark_fields"] == []  # so many are not read


def rotated(capture: Path, folder: Path, packets: int) -> list[Path]:
    """The capture in files of so many packets each."""
    data, at, heads, bodies = capture.read_bytes(), 0, [], []
    while at < len(data):
        kind, length = struct.unpack_from("=II", data, at)
        (bodies if kind == ENHANCED_PACKET else heads).append(data[at : at + length])
        at += length
    paths = []
    for start in range(0, len(bodies), packets):
        paths.append(folder / f"ring-{start:05d}.pcapng")
        paths[-1].write_bytes(b"".join([*heads[:2], *bodies[start : start + packets]]))
    return paths


def test_connections_over_rotated_files(tshark: str, tmp_path: Path) -> None:
    """tshark reads each file by itself: it lacks requests and CONNECTs of the file before."""
    files = [*rotated(KAFKA, tmp_path, 203), *rotated(SAMPLES / "mqtt_v5_features.pcapng", tmp_path, 160)]
    done = run("crosscheck", *files, "--fail-on", "disagreement", "--format", "json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["disagreements"]) == (0, [])
    assert found["agree"] > 0
    [reason] = [reason for reason in found["reasons"] if reason["code"] == "earlier_file"]
    assert {reason["first"]["protocol"], reason["count"] > 1} <= {"kafka", "mqtt", True}


def test_a_dataset_is_compared_with_its_captures(tshark: str, tmp_path: Path) -> None:
    copy = Path(shutil.copy(MQTT, tmp_path))
    dataset = make_dataset(tmp_path / "dataset", [copy])
    done = run("crosscheck", dataset, "--fail-on", "disagreement")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"196 messages compared")
    copy.unlink()
    done = run("crosscheck", dataset, "--quiet")
    assert done.returncode == 3
    assert f"{copy} is not there: tshark reads the capture itself" in done.stderr.decode()


def test_another_version_is_said(tshark: str, tmp_path: Path) -> None:
    program = tmp_path / "tshark"
    program.write_text(f"#!/bin/sh\n'{tshark}' \"$@\" | sed 's/^TShark .*/TShark (Wireshark) 9.8.7/'\n")
    program.chmod(0o755)
    done = run("crosscheck", MONGO, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert b"compared with tshark 9.8.7" in done.stdout
    assert re.search(r"note: the known reasons were seen with tshark [\d.]+, this is 9.8.7", done.stderr.decode())


def test_what_tshark_says_is_masked_as_our_own_tables_are(tshark: str, tmp_path: Path) -> None:
    """Names that are secrets agree: both are shown as `***`. Nothing that tshark shows besides has one."""
    secret = "Zk7pLq2-planted"
    capture = tmp_path / "a.pcap"
    will = (f"w/token={secret}", b"gone", 0, False)
    turns = [
        (mqtt.connect(4, f"password={secret}", will=will), mqtt.connack(properties=None)),
        (mqtt.subscribe(1, (f"in/password={secret}", 1), properties=None), b""),
        (mqtt.publish(f"out/password={secret}", b"x"), b""),
    ]
    capture.write_bytes(pcap(decoder(turns, 1883, ("10.0.0.1", 41000)), nanoseconds=True))
    assert secret.encode() in capture.read_bytes()
    path = liar(tmp_path, tshark, 's/"mqtt.retain": "[^"]*"/"mqtt.other": "1"/;s/"mqtt.len": "2"/"mqtt.len": "3"/')
    for words in (["--format", "json"], [], ["--fields", "--format", "json"], ["--fields"]):
        done = run("crosscheck", capture, *words, PATH=path)
        assert done.returncode == 0, done.stderr
        assert secret.encode() not in done.stdout + done.stderr
    done = run("crosscheck", capture, "--format", "json")
    assert json.loads(done.stdout)["disagree"] == 0, done.stdout
