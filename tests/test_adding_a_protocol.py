"""A protocol that is put together by docs/adding-a-protocol.md, in a folder of its own, does what the page promises.

The protocol is the example under other names and another magic: its folder is copied, and all that the page adds (new
files, changes of tables of contents) is taken from the page. Programs then run in new processes on that copy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

PAGE, _, VERSION_PAGE = (ROOT / "docs" / "adding-a-protocol.md").read_text().partition("## Adding a Kafka version")
NEW_FILES = re.findall(r"^```python\n# new: (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
DIFF = re.compile(r"^```diff\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHANGES, VERSION_CHANGES = DIFF.findall(PAGE), DIFF.findall(VERSION_PAGE)
# What the copy is made of; tests for the scenarios and for the program that runs commands.
PACKAGES = ("analyser", "app", "dissectors", "reports", "tests/analyser/engine/rules", "tests/support")
SINGLE_FILES = ("pyproject.toml", "tests/__init__.py", "tests/conftest.py", "tests/analyser/__init__.py",
                "tests/analyser/engine/__init__.py",
                "tests/app/__init__.py", "tests/app/program.py")  # fmt: skip
OWN_FILES = ("dissectors/example", "tests/support/example_capture.py", "tests/support/example_encode.py")
# The plain rule by which the example becomes another protocol, which no code of ours knows.
OTHER_NAMES = (("example", "tally"), ("Example", "Tally"), ("EXAMPLE", "TALLY"), ("exa101", "tal101"), ("EXA", "TAL"),
               ("CAFE", "7A11"), (r"\xca\xfe", r"\x7a\x11"))  # fmt: skip

COMMANDS = """
import json
from pathlib import Path
from random import Random
from struct import pack
from tests.app.program import run
from tests.analyser.engine.rules.test_scenarios import findings_of
from tests.analyser.engine.rules.scenarios import FIRES, NEAR_MISSES
from tests.support import kafka_encode
from tests.support.packets import pcap
from tests.support.tally_capture import write_capture
from tests.support.wire import Talk

write_capture(Path("calls.pcap"))

def said(*words):
    done = run(*words)
    return [done.returncode, done.stdout.decode(), done.stderr.decode()]

def partitions(value):
    return [partition for topic in value["topics"] for partition in topic["partitions"]]

def commit(number):
    random = Random(number)
    asked, request = kafka_encode.message(8, 11, "request", random)
    answer, _ = kafka_encode.message(8, 11, "response", random)
    frames = (pack(">hhih", 8, 11, number, 1) + b"c\\0" + asked, pack(">ib", number, 0) + answer)
    return [pack(">i", len(frame)) + frame for frame in frames], [one["commit_reason"] for one in partitions(request)]

talk, sent, reasons = Talk(server=("10.0.0.2", 9092)).handshake(), [0, 0], []
for number in range(8):
    frames, told = commit(number)
    reasons += told
    for side, frame in enumerate(frames):
        talk.send(side == 0, sent[side], frame, ack=sent[not side])
        sent[side] += len(frame)
Path("commits.pcap").write_bytes(pcap(talk.packets))

message = said("table", "messages", "calls.pcap", "--format", "csv", "--columns", "message_id")[1].split()[1]
print(json.dumps({
    "analyse": said("analyse", "calls.pcap", "--quiet"),
    "analyse json": said("analyse", "calls.pcap", "--quiet", "--format", "json"),
    "table": said("table", "tally_calls", "calls.pcap", "--format", "jsonl"),
    "tables": said("tables", "tally_calls"),
    "detectors": said("detectors", "TAL101"),
    "show": said("show", "calls.pcap", message),
    "otel": said("otel", "calls.pcap", "--quiet"),
    "help": said("--help"),
    "commits": said("table", "kafka_offset_commits", "commits.pcap", "--format", "jsonl"),
    "errors": said("table", "messages", "commits.pcap", "--format", "jsonl", "--where", "error is not null"),
    "reasons": reasons,
    "scenarios": [[str(one), [list(pair) for pair in one.expected], [[f.code, f.severity] for f in findings_of(one)]]
                  for one in (*FIRES, *NEAR_MISSES) if one.code == "TAL101"],
}))
"""

DASHBOARD = """
import json, sys
from streamlit.testing.v1 import AppTest
from wirewitness.app.dashboard.jobs import key_of
from wirewitness.app.dashboard.offers import given_offer
from wirewitness.app.dashboard.offered import GIVEN
from wirewitness.app.dashboard.worker import keep_tables
from tests.support.tally_capture import write_capture

offer = given_offer([str(write_capture(__import__("pathlib").Path("page.pcap").absolute()))], {})
keep_tables(list(offer.paths), {}, key_of(offer.paths, {}))
sys.argv[1:] = [GIVEN + json.dumps({"paths": list(offer.paths), "options": {}})]
app = AppTest.from_file("app/dashboard/streamlit_app.py", default_timeout=60)
app.query_params["capture"] = offer.id
app.run()
(link,) = [one.proto for one in app.sidebar.get("page_link") if one.proto.page == "tally-calls"]
app._page_hash = link.page_script_hash
app.run()
assert not app.exception, [error.message for error in app.exception]
cells = [row["cells"] for one in app.get("bidi_component") for row in json.loads(one.proto.json)["rows"]]
print(json.dumps([link.label, [one.body for one in app.get("html")], cells]))
"""


def renamed(text: str) -> str:
    for old, new in OTHER_NAMES:
        text = text.replace(old, new)
    return text


def copied(folder: Path) -> None:
    """The product and what its tests need, compiled files too, so that nothing is compiled again."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package)
    shutil.copytree(ROOT / "src", folder / "src", symlinks=True, ignore=shutil.ignore_patterns("*.egg-info"))
    for name in SINGLE_FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)


def add_own_files(folder: Path) -> None:
    """The example's dissector and the maker of its capture, under the other names."""
    for name in OWN_FILES:
        paths = sorted((ROOT / name).rglob("*.py")) if (ROOT / name).is_dir() else [ROOT / name]
        for path in paths:
            write(folder / renamed(str(path.relative_to(ROOT))), renamed(path.read_text()))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def change(path: Path, hunks: str) -> None:
    """Replace the lines with `-` and without a mark by those with `+` and without; each must be there once."""
    text = path.read_text()
    for hunk in hunks.split("@@\n"):
        lines = hunk.splitlines()
        old = "\n".join(line[1:] for line in lines if line[0] != "+")
        new = "\n".join(line[1:] for line in lines if line[0] != "-")
        assert text.count(old) == 1, (path, old)
        text = text.replace(old, new)
    path.write_text(text)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with one protocol more, and one version more of a Kafka request."""
    folder = tmp_path_factory.mktemp("house")
    copied(folder)
    add_own_files(folder)
    for name, text in NEW_FILES:
        assert not (ROOT / name).exists(), "the page says that it is new"
        write(folder / renamed(name), renamed(text))
    for name, hunks in CHANGES:
        change(folder / renamed(name), renamed(hunks))
    for name, hunks in VERSION_CHANGES:
        change(folder / name, hunks)
    return folder


def python(house: Path, *arguments: str) -> str:
    """What a new process prints that has the copy on its path, and nothing of the user's."""
    own = {name: str(house / name) for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=house, capture_output=True, check=False, timeout=120,
        env={**os.environ, **own, "PYTHONPATH": os.pathsep.join((str(house / "src"), str(house))), "COLUMNS": "120"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return done.stdout.decode()


@pytest.fixture(scope="module")
def said(house: Path) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(python(house, "-c", COMMANDS))
    return answers


def test_the_page_adds_files_and_lines() -> None:
    """A protocol is files of its own and a line, beside an import, in each table of contents."""
    tables = {name: hunks for name, hunks in CHANGES if not name.startswith("dissectors/example/")}
    added = {name: sum(line.startswith("+") for line in hunks.splitlines()) for name, hunks in tables.items()}
    assert sorted(tables) == [
        "analyser/analysis/all_rules.py",
        "analyser/tables/tables.py",
        "app/cli/main.py",
        "app/dashboard/pages.py",
        "dissectors/registry.py",
        "pyproject.toml",
        "reports/base/otel/protocols.py",
        "reports/report/protocols.py",
        "tests/analyser/engine/rules/scenarios/__init__.py",
    ]
    assert max(added.values()) <= 3, added
    assert len(NEW_FILES) == 12


def test_the_report_has_the_section_and_the_finding(said: dict[str, Any]) -> None:
    status, report, _ = said["analyse"]
    assert status == 0
    assert "1 finding: 1 warning." in report
    assert "10.0.0.2:7070 left 1 call of 10.0.0.1 without an answer." in report
    assert re.search(r"\nTALLY\n +SERVER +PORT +CALLS +UNANSWERED .*\n +10\.0\.0\.2 +7070 +4 +1 ", report)
    document = json.loads(said["analyse json"][1])
    assert [finding["code"] for finding in document["findings"]] == ["TAL101"]
    assert document["tally"]["servers"][0]["asked_bytes"] == len(b"add 2 3add 4 5divide 1 0stop")


def test_the_table_has_rows_and_a_description(said: dict[str, Any]) -> None:
    rows = [json.loads(line) for line in said["table"][1].splitlines()]
    assert [(row["status"], row["request_payload_bytes"], row["request_packet"]) for row in rows] == [
        ("ok", 7, 4), ("ok", 7, 6), ("ok", 10, 12), ("unanswered", 4, 16)
    ]  # fmt: skip
    assert all(row["exchange_id"].startswith(row["flow_id"]) and row["file"] == "calls.pcap" for row in rows)
    assert "payload of the request" in said["tables"][1]


def test_the_rule_has_its_page_and_its_scenarios(said: dict[str, Any]) -> None:
    assert said["detectors"][1].startswith("TAL101 unanswered")
    assert [name for name, _, _ in said["scenarios"]] == [
        "TAL101-closed", "TAL101-still open", "TAL101-all answered"
    ]  # fmt: skip
    assert all(found == expected for _, expected, found in said["scenarios"])


def test_show_has_the_tree_and_spans_the_attributes(said: dict[str, Any]) -> None:
    assert re.search(r"\n0-1 +4 +magic +7a11\n", said["show"][1])
    spans = [json.loads(line) for line in said["otel"][1].splitlines()]
    assert "rpc.method" in said["otel"][1]
    assert len(spans) >= 1
    assert "Kafka, MQTT, MongoDB and Tally" in said["help"][1]


def test_the_dashboard_has_the_page(house: Path) -> None:
    label, text, cells = json.loads(python(house, "-c", DASHBOARD).splitlines()[-1])
    assert label == "Calls"
    assert any("Tally calls" in part for part in text)
    assert ["10.0.0.2", "7070", "4", "1"] in [row[:4] for row in cells]


def test_imports_still_go_one_way(house: Path) -> None:
    contracts = python(house, "-c", "from importlinter.cli import lint_imports; raise SystemExit(lint_imports())")
    assert re.search(r"Contracts: \d+ kept, 0 broken", contracts)


def test_a_version_of_kafka_is_a_line_of_its_schema_a_column_and_its_maker(said: dict[str, Any]) -> None:
    rows = [json.loads(line) for line in said["commits"][1].splitlines()]
    assert sorted(map(str, (row["commit_reason"] for row in rows))) == sorted(map(str, said["reasons"]))
    assert len({reason for reason in said["reasons"] if reason}) >= 3
    assert {row["api"] for row in rows} == {"OffsetCommit"}
    assert said["errors"] == [0, "", ""]
    assert [name for name, _ in VERSION_CHANGES] == [
        "dissectors/kafka/apis/08_offset_commit.kafka",
        "dissectors/kafka/rows/group_fields.py",
        "dissectors/kafka/rows/group_rows.py",
    ]
    assert sum(line.startswith("+") for _, hunks in VERSION_CHANGES for line in hunks.splitlines()) == 4
