"""`wirewitness expect`: exit statuses, and what programs read."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.app.captures import CLIENT_PORT, kafka_packets
from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.packets import pcap
from tests.support.shares import share

MQTT = SAMPLES / "mqtt_takeover_loop.pcapng"
HOLDS = "[[expect]]\nname = 'a'\ntable = 'exchanges'\ncount = '> 0'\n"
FAILS = "[[expect]]\nname = \"no \\u001b[2J <take over> & more\"\nno_findings = ['MQT102']\n"
NOTHING = "[[expect]]\nname = 'c'\nno_findings = ['MON104']\n"


def rules(folder: Path, *parts: str) -> Path:
    path = folder / "rules.toml"
    path.write_text("".join(parts))
    return path


@pytest.mark.parametrize(
    ("parts", "options", "status", "end"),
    [
        pytest.param([HOLDS], [], 0, "1 expectation: 1 ok, 0 FAILED.", id="holds"),
        pytest.param([HOLDS, FAILS], [], 1, "2 expectations: 1 ok, 1 FAILED.", id="fails"),
        pytest.param([HOLDS, NOTHING], [], 0, "1 ok, 0 FAILED, 1 with nothing to check.", id="nothing"),
        pytest.param([HOLDS, NOTHING], ["--strict"], 1, "--strict wants all of them checked.", id="strict"),
        pytest.param([NOTHING], [], 1, "That is a failure: nothing at all could be checked.", id="nothing at all"),
    ],
)
def test_the_status_says_whether_all_hold(
    tmp_path: Path, parts: list[str], options: list[str], status: int, end: str
) -> None:
    done = run("expect", rules(tmp_path, *parts), MQTT, "--quiet", *options)
    assert done.returncode == status
    assert " ".join(done.stdout.decode().split()).endswith(end)


def test_programs_read_json_and_junit(tmp_path: Path) -> None:
    junit = tmp_path / "report.xml"
    path = rules(tmp_path, HOLDS, FAILS, NOTHING)
    done = run("expect", path, MQTT, "--quiet", "--format", "json", "--junit", junit)
    told = json.loads(done.stdout)
    assert told["failed"] is True
    assert [one["state"] for one in told["expectations"]] == ["ok", "FAILED", "nothing"]
    failed = told["expectations"][1]
    assert failed["findings_count"] == len(failed["findings"]) == 2
    assert failed["findings"][0]["evidence"][0]["packet"] > 0
    suite = ElementTree.parse(junit).getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    names = [case.get("name") for case in suite]
    assert names == ["a", "no \\x1b[2J <take over> & more", "c"]
    (failure,) = suite[1]
    assert "MQT102" in str(failure.text)
    assert [child.tag for child in suite[2]] == ["skipped"]


def test_wrong_usage(tmp_path: Path) -> None:
    for words, said in (
        (["kafka-consumr", MQTT], "did you mean kafka-consumer?"),
        (["none.toml", MQTT], "none.toml: no such file"),
        (["kafka-consumer", MQTT, "--about", "group"], "write NAME=VALUE"),
        (["kafka-consumer", MQTT, "--about", "grup=x"], "did you mean group"),
        (["kafka-consumer", MQTT, "--junit", tmp_path], "that is a directory"),
        (["kafka-consumer", tmp_path / "none.pcap"], "none.pcap"),
        ([rules(tmp_path, HOLDS.replace("exchanges", "exchange")), MQTT], "did you mean exchanges"),
    ):
        done = run("expect", *words)
        assert (done.returncode, done.stdout) == (2, b""), words
        assert said in done.stderr.decode()


def test_the_list_and_the_rules_of_one() -> None:
    assert "mqtt-client" in run("expect", "--list").stdout.decode()
    printed = run("expect", "--print", "mongo-driver").stdout.decode()
    assert printed.startswith("# A MongoDB driver")
    assert run("expect", "--print", "mongo").returncode == 2


@pytest.mark.parametrize("width", share([60, 160], [60]))
def test_it_fits_into_the_terminal(tmp_path: Path, width: int) -> None:
    path = rules(tmp_path, HOLDS.replace("> 0", "== 0"), FAILS, NOTHING)
    text = run("expect", path, MQTT.name, "--quiet", COLUMNS=str(width), cwd=SAMPLES).stdout.decode()
    assert max(map(len, text.splitlines())) <= width


def test_what_the_capture_lacks_is_said(tmp_path: Path) -> None:
    """Packets of one direction alone, as a mirror port that was set up wrongly gives them."""
    capture = tmp_path / "one.pcap"
    requests = [packet for packet in kafka_packets() if packet.data[34:36] == CLIENT_PORT.to_bytes(2)]
    capture.write_bytes(pcap(requests, nanoseconds=True))
    path = rules(tmp_path, HOLDS, "[[expect]]\nname = 'd'\nno_findings = ['KAF303']\nneeds = 'exchanges'\n")
    text = " ".join(run("expect", path, capture, "--quiet").stdout.decode().split())
    assert "doubt Of 1 connection only one direction is in the capture" in text
    told = json.loads(run("expect", path, capture, "--quiet", "--format", "json").stdout)
    assert len(told["doubts"]) == 1
