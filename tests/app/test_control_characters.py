"""Names from the wire never steer a terminal, a page or a spreadsheet, whichever command writes them."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from functools import cache
from pathlib import Path

import pytest

import wirewitness
from tests.app.program import run
from tests.support.packets import pcap
from tests.support.planted import commits, decoder, mongo_turns, mqtt_turns, settings, together

# CSI, bell, backspace, delete, CR, NEL, 8-bit CSI, override, isolate, both separators, a tag, zero width, a line end.
BAD = "\x1b[31m\x07\x08\x7f\r\x85\x9b2J\u202e\u2066\u2028\u2029\U000e0041\u200b\n"
# MQTT lets a server refuse some of these, so they are sent all the same.
KINDS = {"Cc", "Cf", "Zl", "Zp", "Cs"}


def bad(name: str) -> str:
    return f"={name}{BAD}"


def unsafe(output: bytes) -> set[str]:
    """What of the output a terminal would obey; line ends are the program's own."""
    text = output.decode()
    assert "31m" in text, "no name in it: this test would prove nothing"
    return {char for char in text if char != "\n" and unicodedata.category(char) in KINDS}


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    member, topic = bad("member"), bad("topic")
    documents = {bad("field"): bad("value")}
    kafka = commits(bad("client"), bad("group"), member, topic, bad("metadata"), [10, 20, 5, 30, 4, 40])
    others = commits(bad("other"), bad("group"), bad("second"), topic, "", [6, 21, 7, 31, 8])
    changes = settings(bad("admin"), topic, [(bad("setting"), bad("value"))], bad("no"))
    mqtt = mqtt_turns(bad("device"), bad("user"), bad("place"), bad("reason"), [(bad("p"), bad("v"))], b"=x")
    mongo = mongo_turns(bad("app"), bad("db"), bad("things"), documents, bad("comment"), [bad("failed")] * 2)
    first = commits("app", "g", "m", "t", "", [1])  # what a connection begins with decides what it is
    kafka, others, changes = first + kafka, first + others, first + changes
    turns = [(kafka, 9092), (others, 9092), (changes, 9092), (mqtt, 1883), (mongo, 27017)]
    packets = together(*(decoder(one, port, (f"10.0.0.{n}", 41000)) for n, (one, port) in enumerate(turns, 11)))
    folder = tmp_path_factory.mktemp("names")
    path = folder / "=31m\r\u202e\x1b[31m\x9b.pcap"
    path.write_bytes(pcap(packets, nanoseconds=True))
    return path


@cache
def ids(capture: Path) -> tuple[str, str]:
    """A message and a finding."""
    with wirewitness.read(capture) as analysis:
        message = analysis.arrow("messages", ["message_id"], "operation = 'PUBLISH'").to_pylist()[0]["message_id"]
        return message, str(analysis.findings()["finding_id"].iloc[0])


@pytest.mark.parametrize("format_", ["text", "json", "html", "markdown"])
def test_reports(capture: Path, format_: str) -> None:
    done = run("analyse", capture, "--format", format_)
    assert done.returncode == 0, done.stderr
    assert not unsafe(done.stdout)
    assert not unsafe(b"31m" + done.stderr)


TABLES = ["messages", "exchanges", "kafka_offset_commits", "kafka_admin_changes", "mqtt_publishes", "mqtt_connections",
          "mongo_commands", "findings", "captures", "expert_infos"]  # fmt: skip


@pytest.mark.parametrize("format_", ["table", "csv", "jsonl"])
@pytest.mark.parametrize("table", TABLES)
def test_tables(capture: Path, table: str, format_: str) -> None:
    done = run("table", table, capture, "--format", format_)
    assert done.returncode == 0, done.stderr
    assert not unsafe(done.stdout + b"31m")
    if format_ == "csv":
        for row in csv.reader(io.StringIO(done.stdout.decode(), newline="")):
            assert not [cell for cell in row if cell.lstrip()[:1] in {"=", "+", "@"}]


COMMANDS = [
    ["groups"], ["groups", "--over-time"], ["groups", "--state"], ["groups", "--members"], ["topics"],
    ["topics", "--partitions"], ["clients"], ["clients", "--versions"], ["brokers"], ["brokers", "--changes"],
    ["shapes"], ["otel"], ["findings"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_views(capture: Path, command: list[str]) -> None:
    done = run(*command, capture)
    assert done.returncode == 0, done.stderr
    assert not unsafe(done.stdout + b"31m")


def test_one_message_and_the_evidence_of_a_finding(capture: Path, tmp_path: Path) -> None:
    message, finding = ids(capture)
    for words in (["--payload"], ["--payload", "--format", "json"]):
        done = run("show", capture, message, *words, "--no-index")
        assert done.returncode == 0, done.stderr
        assert not unsafe(done.stdout)
    bundle = tmp_path / "\x1b[31m\u202e"
    done = run("extract", capture, "--finding", finding, "--bundle", bundle, "-o", tmp_path / "evidence.pcapng")
    assert done.returncode == 0, done.stderr
    assert not unsafe(b"31m" + done.stderr)
    for file in bundle.iterdir():
        if file.suffix in {".txt", ".jsonl", ".md", ".json"}:
            assert not unsafe(file.read_bytes() + b"31m")


def test_a_stream_that_live_reads(capture: Path) -> None:
    for form in ("text", "jsonl"):
        done = run("live", "-r", capture, "--format", form)
        assert done.returncode == 0, done.stderr
        assert not unsafe(done.stdout)
        assert not unsafe(b"31m" + done.stderr)


@pytest.mark.parametrize(
    "words",
    [
        ["analyse", "/nowhere/\x1b[31m\r\u202e\nwirewitness: all is well"],
        ["show", "/nowhere/\x1b[31m\r\u202e", "x"],
        ["table", "\x1b[31m\r\u202e\nwirewitness: all is well", "x.pcap"],
        ["table", "messages", "x.pcap", "--columns", "\x1b[31m\r\u202e"],
        ["table", "messages", "x.pcap", "--where", "x = '\x1b[31m\r\u202e' and y"],
        ["query", "x.pcap", "select '\x1b[31m\r\u202e' from nothing"],
        ["analyse", "--\x1b[31m\r\u202e"],
        ["\x1b[31m\r\u202e\nwirewitness: all is well"],
        ["live", "-i", "\x1b[31m\r\u202e"],
        ["analyse", "x.pcap", "--output", "/nowhere/\x1b[31m\r\u202e"],
        ["analyse", "x.pcap", "--from", "\x1b[31m\r\u202e"],
        ["analyse", "x.pcap", "--format", "\x1b[31m\r\u202e"],
    ],
    ids=lambda words: words[0].encode("unicode_escape").decode()[:20],
)
def test_errors_that_quote_what_was_given(words: list[str]) -> None:
    done = run(*words)
    assert done.returncode == 2, done.stderr
    assert not unsafe(b"31m" + done.stderr)
    assert "wirewitness: all is well" not in done.stderr.decode().splitlines()


EXACT = [
    ("kafka_offset_commits", "client_id", "client"),
    ("kafka_admin_changes", "resource_name", "topic"),
    ("mqtt_publishes", "topic", "place"),
    ("mongo_commands", "app_name", "app"),
]


@pytest.mark.parametrize(("table", "column", "name"), EXACT)
def test_exact_text_where_it_is_asked_for(capture: Path, table: str, column: str, name: str) -> None:
    done = run("table", table, capture, "--columns", column, "--format", "csv", "--raw")
    assert bad(name) in {row[0] for row in csv.reader(io.StringIO(done.stdout.decode(), newline="")) if row}
    lines = run("table", table, capture, "--columns", column, "--format", "jsonl").stdout
    assert bad(name) in {json.loads(line)[column] for line in lines.split(b"\n") if line}


def test_exactness_is_for_csv_alone(capture: Path) -> None:
    assert run("table", "messages", capture, "--raw").returncode == 2
