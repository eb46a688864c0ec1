"""`extract` from captures and a request log together: packets are written, and what is left out is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wirewitness
from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.request_log import write_sample_log
from tests.support.rotated import rotated
from tests.support.wire import packets_of
from wirewitness.analyser.capture import CaptureStats, EndpointTable, open_captures, read_batches

NAME = "kafka_stale_commit"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of a capture the first and the last third, and the log of the whole time between them."""
    folder = tmp_path_factory.mktemp("files")
    first, _, last = rotated(list(packets_of(SAMPLES / f"{NAME}.pcapng")), folder, 3)
    return [first, write_sample_log(SAMPLES, NAME, folder / "request.log"), last]


def packets_in(path: Path) -> int:
    [source] = open_captures([path])
    stats = CaptureStats(source.name)
    for _ in read_batches(source, EndpointTable(), stats):
        pass
    return stats.packets


def test_the_packets_of_a_finding_and_which_lines_are_left_out(files: list[Path], tmp_path: Path) -> None:
    with wirewitness.read(files, tables=["findings"]) as analysis:
        told = {row["finding_id"]: json.loads(row["evidence"]) for row in analysis.arrow("findings").to_pylist()}
    mixed = {one: evidence for one, evidence in told.items() if any("line" in item for item in evidence)
             and any(item["packet"] for item in evidence)}  # fmt: skip
    finding, evidence = next(iter(mixed.items()))
    out = tmp_path / "evidence.pcapng"
    done = run("extract", *files, "--finding", finding, "-o", out, "--no-index")
    lines = [str(item["line"]) for item in evidence if "line" in item]
    said = done.stderr.decode()
    assert done.returncode == 0, said
    assert f"left out {len(lines)} line{'s' * (len(lines) > 1)} of {files[1]}, which have no packets: " in said
    assert {*said.splitlines()[-1].rpartition(": ")[2].split(", ")} == {*lines}
    assert packets_in(out) >= len(evidence) - len(lines) > 0


@pytest.mark.parametrize("kind", ["exchange", "message", "flow"])
def test_what_the_log_alone_tells_is_refused_in_a_line(files: list[Path], kind: str, tmp_path: Path) -> None:
    with wirewitness.read(files, tables=["exchanges"]) as analysis:
        rows = analysis.arrow("exchanges", where="line IS NOT NULL").to_pylist()
    wanted = rows[0]["flow_id"] if kind == "flow" else rows[0]["request_message_id"]
    done = run("extract", *files, f"--{kind}", wanted, "-o", tmp_path / "x.pcapng", "--no-index")
    expected = (
        f"wirewitness: this {kind} is known by {files[1]} alone, a request log, which has no packets to extract; "
        "`wirewitness show` has its lines\n"
    )
    assert (done.returncode, done.stderr.decode().splitlines(keepends=True)[-1]) == (2, expected)
    assert not (tmp_path / "x.pcapng").exists()


def test_a_connection_is_followed_over_a_log_between_its_captures(files: list[Path], tmp_path: Path) -> None:
    """`show` and `extract` of packets pass over files without any."""
    with wirewitness.read(files, tables=["exchanges", "flows"]) as analysis:
        [exchange] = analysis.sql(
            "SELECT e.flow_id, request_message_id FROM exchanges e JOIN flows f USING (flow_id) "
            f"WHERE request_file = '{files[2]}' AND f.file = '{files[0]}' ORDER BY e.ts DESC LIMIT 1"
        ).to_pylist()
    out = tmp_path / "flow.pcapng"
    assert run("extract", *files, "--flow", exchange["flow_id"], "-o", out, "--no-index").returncode == 0
    assert packets_in(out) > 10
    assert run("show", *files, exchange["request_message_id"], "--no-index").returncode == 0
