"""Lines that a request log lacks: what numbers tell of them, and that rules accuse nobody for want of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import wirewitness
from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.request_log import START_MS, header, heartbeat, line, write_sample_log

SARAMA = {"softwareName": "sarama", "softwareVersion": "v1.61.1"}
JAVA = {"softwareName": "apache-kafka-java", "softwareVersion": "4.3.0"}
NAMELESS = {"softwareName": "unknown", "softwareVersion": "unknown"}
ONE, OTHER = "10.0.0.2:9092-10.0.0.11:40000-1-7", "10.0.0.2:9092-10.0.0.12:40001-1-8"


def asks(number: int, seconds: float = 0, connection: str = ONE, software: dict[str, str] = SARAMA, **more: Any) -> str:
    said = heartbeat(
        requestHeader=header(12, 4, number, "HEARTBEAT"), connection=connection, clientInformation=software, **more
    )
    return line(said, START_MS + round(seconds * 1000))


def fetches(epoch: int, seconds: float = 0, session: int = 77, number: int = 0, connection: str = ONE) -> str:
    """A Fetch of Java's client; the answer to epoch 0 begins the session."""
    body = {
        "maxWaitMs": 500, "minBytes": 1, "maxBytes": 1, "isolationLevel": 0, "sessionId": session if epoch else 0,
        "sessionEpoch": epoch, "topics": [], "forgottenTopicsData": [], "rackId": "",
    }  # fmt: skip
    answer = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": session, "responses": []}
    said = heartbeat(
        requestHeader=header(1, 12, number, "FETCH"), connection=connection, clientInformation=JAVA, request=body,
        response=answer,
    )  # fmt: skip
    return line(said, START_MS + round(seconds * 1000))


def told(path: Path, text: str) -> tuple[list[int | None], list[tuple[int, str]]]:
    """What each connection lacks, and the lines and severities of the remarks on it."""
    path.write_text(text)
    with wirewitness.read(path, tables=["flows", "expert_infos"]) as analysis:
        flows = analysis.arrow("flows", columns=["missing_requests"]).to_pylist()
        remarks = analysis.arrow("expert_infos", where="\"group\" = 'log' AND code = 'gap'").to_pylist()
    return [row["missing_requests"] for row in flows], [(row["line"], row["severity"]) for row in remarks]


SASL = {"securityProtocol": "SASL_SSL"}
PLAIN = {"securityProtocol": "PLAINTEXT"}


# Of a log's lines, as many are left out.
SHARES = pytest.mark.parametrize(
    "share", [pytest.param(0.02, marks=pytest.mark.exhaustive), 0.11, pytest.param(0.3, marks=pytest.mark.exhaustive)]
)


@pytest.mark.parametrize(
    ("lines", "missing", "remarks"),
    [
        pytest.param([asks(n, n) for n in (4, 5, 6)], [0], [], id="none"),
        pytest.param([asks(n, n, **PLAIN) for n in (4, 5, 9, 10)], [3], [(3, "warn")], id="three in a row"),
        pytest.param([asks(n, n, **SASL) for n in (4, 5, 9)], [0], [(3, "note")], id="or the client logged in again"),
        pytest.param([asks(n, n, **SASL) for n in (4, 6, 16)], [10], [(2, "warn"), (3, "warn")], id="no login"),
        pytest.param([asks(n, n) for n in (8, 9, 0, 1)], [0], [], id="numbers begin anew"),
        pytest.param([asks(n, n, software=JAVA) for n in (1, 4, 9)], [None], [], id="one counter for all connections"),
        pytest.param(
            [asks(n, n, software=NAMELESS, **PLAIN) for n in (1, 2, 3, 7)], [None], [(4, "note")], id="without a name"
        ),
        pytest.param(
            [asks(n, n, software=NAMELESS) for n in (1, 5, 9)], [None], [], id="without a name, and others have them"
        ),
        pytest.param([fetches(0), fetches(1, 1), fetches(2, 2)], [0], [], id="a fetch session"),
        pytest.param([fetches(0), fetches(2, 1), fetches(3, 2), fetches(5, 3)], [2],
                     [(1, "note"), (2, "warn"), (2, "note"), (3, "note"), (4, "warn"), (4, "note")],
                     id="a fetch session lacks two"),
        pytest.param([fetches(3), fetches(4, 1), fetches(1, 2, 88), fetches(2, 3, 88)], [0], [], id="two sessions"),
        pytest.param([asks(1, 0, isForwarded=True), asks(9, 1, isForwarded=True)], [None], [], id="passed on"),
    ],
)  # fmt: skip
def test_numbers_tell_what_is_missing(
    lines: list[str], missing: list[int | None], remarks: list[tuple[int, str]], tmp_path: Path
) -> None:
    assert told(tmp_path / "log", "".join(lines)) == (missing, remarks)


def test_connections_that_nothing_numbers_are_in_doubt_where_others_lack_lines(tmp_path: Path) -> None:
    lines = [asks(1, 0, **PLAIN), asks(1, 1, OTHER, JAVA), asks(9, 2, **PLAIN)]
    lines += [asks(7, at, OTHER, JAVA) for at in (3, 30, 120, 240)]
    assert told(tmp_path / "log", "".join(lines)) == (
        [7, None],
        [(2, "note"), (3, "warn"), (4, "note"), (5, "note"), (6, "note")],
    )


def test_a_session_goes_on_over_another_connection(tmp_path: Path) -> None:
    again = ONE.replace("40000", "40009")
    missing, remarks = told(tmp_path / "log", fetches(0) + fetches(1, 1) + fetches(4, 2, connection=again))
    assert sorted(map(str, missing)) == ["0", "2"]
    assert [one for one in remarks if one[1] == "warn"] == [(3, "warn")]


def test_the_report_says_how_much_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(asks(n, n, **PLAIN) for n in (1, 2, 6, 7)))
    report = " ".join(run("analyse", path).stdout.decode().split())
    assert "lines 3 requests of 1 connection are not in the log, as the numbers of those next to them" in report
    path.write_text("".join(asks(n, n) for n in (1, 2, 3)))
    assert "are not in the log" not in run("analyse", path).stdout.decode()


WHOLE = ("kafka_admin", "kafka_cluster", "kafka_fenced_commit", "kafka_share_streams")


@pytest.fixture(scope="module", params=["kafka_healthy", *(pytest.param(n, marks=pytest.mark.cases) for n in WHOLE)])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample_log(SAMPLES, request.param, tmp_path_factory.mktemp("log") / "whole.log")


def accusations(path: Path) -> set[tuple[str, str]]:
    """Code and subject of all findings above info."""
    with wirewitness.read(path, tables=["findings"]) as analysis:
        found = analysis.arrow("findings", columns=["code", "subject", "severity"]).to_pylist()
    return {(row["code"], row["subject"]) for row in found if row["severity"] != "info"}


def test_a_whole_log_lacks_nothing(whole: Path) -> None:
    with wirewitness.read(whole, tables=["flows"]) as analysis:
        missing = analysis.arrow("flows", columns=["missing_requests"]).column(0).to_pylist()
    assert {*missing} <= {0, None}
    assert 0 in missing


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
@SHARES
def test_a_log_without_some_of_its_lines_accuses_nobody(share: float, seed: int, whole: Path, tmp_path: Path) -> None:
    choice = random.Random(seed)
    part = tmp_path / "part.log"
    part.write_bytes(b"".join(one for one in whole.read_bytes().splitlines(True) if choice.random() >= share))
    assert accusations(part) <= accusations(whole)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2))
def test_a_log_without_one_of_its_rotated_files_accuses_nobody(seed: int, whole: Path, tmp_path: Path) -> None:
    lines = whole.read_bytes().splitlines(True)
    begin = int(len(lines) * random.Random(seed).uniform(0.1, 0.7))
    part = tmp_path / "part.log"
    part.write_bytes(b"".join(lines[:begin] + lines[begin + len(lines) // 5 :]))
    assert accusations(part) <= accusations(whole)


@SHARES
def test_the_fault_is_named_although_lines_are_missing(share: float, tmp_path: Path) -> None:
    log = write_sample_log(SAMPLES, "kafka_stale_commit", tmp_path / "whole.log")
    choice = random.Random(1)
    part = tmp_path / "part.log"
    part.write_bytes(b"".join(one for one in log.read_bytes().splitlines(True) if choice.random() >= share))
    codes = {code for code, _ in accusations(part)}
    assert codes >= {"KAF101", "KAF102", "KAF103", "KAF104"}
    assert accusations(part) <= accusations(log)
