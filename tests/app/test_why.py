"""`wirewitness why` on samples: formats, status, wrong usage, other inputs than captures, hostile ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.shares import share
from wirewitness.analyser.tables.tables import SCHEMA_VERSION

STALE = SAMPLES / "kafka_stale_commit.pcapng"
LOG = SAMPLES / "request_logs" / "kafka_stale_commit.log.gz"


def test_each_link_has_its_time_its_packets_and_its_rows() -> None:
    done = run("why", STALE, "payments", "4", "--rows")
    assert done.returncode == 0
    text = " ".join(done.stdout.decode().split())
    assert text.startswith(
        "payments 4 of group payments-ledger the committed offset of payments-4 is 49; the lag is 77"
    )
    assert "1 11:24:11.338 ledger-a@10.77.0.12 stored 49 over 126 as a member of generation 3" in text
    assert "packets 11633, 11635; kafka_offset_commits: exchange_id = 'b22ff77c36e3ff4b-c-43607'" in text
    assert "The consumer started here; the capture cannot show why" in text


@pytest.mark.parametrize("width", share([40, 60, 200], [40]))
def test_lines_fit_the_terminal(width: int) -> None:
    done = run("why", STALE, "payments", "4", COLUMNS=str(width))
    longest = max(map(len, done.stdout.decode().splitlines()))
    assert longest <= max(width, 60)  # a word (an address, an id) is never broken


def test_json_has_the_same_chain_with_rows_that_can_be_asked_for() -> None:
    told = json.loads(run("why", STALE, "payments-4", "--format", "json").stdout)
    assert told["schema_version"] == SCHEMA_VERSION
    (chain,) = told["chains"]
    assert chain["healthy"] is False
    assert {one["code"] for one in chain["findings"]} == {"KAF101", "KAF102", "KAF103", "KAF104"}
    link, kinds = chain["causes"][0], []
    while link["causes"]:
        link = link["causes"][0]
        kinds.append(link["kind"])
        assert link["sure"] == "fact"
        assert link["ts"].endswith("Z")
        for row in link["rows"]:
            rows = run("table", row["table"], STALE, "--where", row["where"], "--format", "jsonl")
            assert rows.stdout.strip()
    assert kinds == ["commit", "lost_assignment", "rebalance", "started"]
    assert link["end"] == "the consumer started here; the capture cannot show why"


def test_markdown_and_a_file(tmp_path: Path) -> None:
    out = tmp_path / "why.md"
    done = run("why", STALE, "payments", "4", "--format", "markdown", "--output", out)
    assert (done.returncode, done.stdout) == (0, b"")
    text = " ".join(out.read_text().split())
    assert text.startswith("# wirewitness why ### payments 4 of group payments-ledger")
    assert "stored 49 over 126" in text


def test_a_finding_by_its_id() -> None:
    rows = run("table", "findings", STALE, "--format", "jsonl").stdout.decode().splitlines()
    found = next(one for one in map(json.loads, rows) if one["code"] == "KAF102")
    done = run("why", STALE, found["finding_id"])
    assert done.returncode == 0
    assert f"finding {found['finding_id']}" in done.stdout.decode()


def test_nothing_wrong_is_status_0_and_said_so() -> None:
    done = run("why", STALE, "payments", "1")
    assert done.returncode == 0
    assert b"nothing is wrong: committed up to the end of the log (125)" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((STALE, "paymnts", "4"), "near it: payments-4 (group payments-ledger)"),
        ((STALE,), "a capture and a subject are needed"),
        ((SAMPLES / "nothing.pcapng", "payments", "4"), "nothing.pcapng"),
        ((STALE, "payments", "4", "--from", "2026-11-20"), "--from and --to do not go with why"),
        ((SAMPLES / "mqtt_healthy.pcapng", "payments", "4"), "nothing here is called 'payments 4'"),
        ((STALE, "\x1b]0;evil\x07", "4"), r"\x1b]0;evil\x07"),
    ],
)
def test_what_cannot_be_answered_is_status_2(words: tuple[str, ...], said: str) -> None:
    done = run("why", *words)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert done.stdout == b""


def test_a_request_log_tells_the_same_with_lines() -> None:
    done = run("why", LOG, "payments", "4")
    assert done.returncode == 0
    text = " ".join(done.stdout.decode().split())
    assert "stored 81 over 1" in text
    assert "until generation" in text
    assert "lines " in text
    assert "packets " not in text


@pytest.mark.parametrize("kept", share([0.2, 0.5, 0.9], [0.5]))
def test_cut_captures_are_answered_or_refused(tmp_path: Path, kept: float) -> None:
    data = STALE.read_bytes()
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(data[: int(len(data) * kept)])
    for words in (("payments", "4"), ("orders", "0")):
        done = run("why", cut, *words)
        assert done.returncode in (0, 2), done.stderr
        assert (b"nothing here is called" in done.stderr) == (done.returncode == 2)


def test_a_client_is_told_with_its_host_where_it_stands_first(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("10.77.0.12 node-12.shop\n10.77.0.1 node-1.shop\n")
    done = run("why", STALE, "payments", "4", "--hosts", hosts)
    text = " ".join(done.stdout.decode().split())
    assert text.count("ledger-a@10.77.0.12") > text.count("(host node-12.shop)") == 1
    assert "ledger-a@10.77.0.12 (host node-12.shop) stored 49 over 126" in text
    assert "node-1.shop" not in text
