"""Request logs and log segments in a dataset: it holds what the offline command finds in the same files, however they
come."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import wirewitness
from tests.analyser.decoding.run.test_logs import asks
from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.archived import differences
from tests.support.record_batches import Sent, batch
from tests.support.request_log import heartbeat, line, write_sample_log
from tests.support.rotated import rotated
from tests.support.segments import START_MS as STORED_MS
from tests.support.segments import commits, end_of_transaction, numbered, segment, write_segment
from tests.support.shares import share
from tests.support.wire import packets_of
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.dataset.place import DatasetError
from wirewitness.analyser.archive.run import ArchiveOptions, archive
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.app.dashboard.components.inspector import message_data
from wirewitness.app.dashboard.opened import Opened
from wirewitness.app.dashboard.packets import exchange_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR_NS = 3_600_000_000_000


def taken_in(
    spark: SparkSession, runs: Sequence[Sequence[Path]], root: Path, read: ReadOptions | None = None
) -> list[Path]:
    """Make the dataset, one run for each list of files; all files."""
    options = ArchiveOptions(shards=2, read=read or ReadOptions())
    for files in runs:
        summary = archive(files, root, spark, options)
        assert (summary.aside, summary.failures) == ([], [])
    return [file for files in runs for file in files]


def cut(text: bytes, folder: Path, places: Sequence[int], *, packed: bool = False) -> list[Path]:
    """The lines of a log in files that begin at these lines, as rotation leaves them."""
    folder.mkdir(exist_ok=True)
    lines = text.splitlines(keepends=True)
    found = []
    for number, (first, until) in enumerate(zip([0, *places], [*places, len(lines)], strict=True)):
        path = folder / (f"kafka-request.log.{number}" + ".gz" * packed)
        part = b"".join(lines[first:until])
        path.write_bytes(gzip.compress(part) if packed else part)
        found.append(path)
    return found


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A broker's log with rebalances and a fenced commit: 456 lines."""
    return write_sample_log(SAMPLES, "kafka_fenced_commit", tmp_path_factory.mktemp("log") / "x.log").read_bytes()


def test_rotated_logs_are_one_log(spark: SparkSession, sample: bytes, tmp_path: Path) -> None:
    """All in one run, packed, a line cut in two by the rotation; and a record of the manifest says what each is."""
    texts = sample[:200_000], sample[200_000:]
    files = [tmp_path / f"kafka-request.log.{number}.gz" for number in (2, 1)]
    for path, text in zip(files, texts, strict=True):
        path.write_bytes(gzip.compress(text))
    assert differences(tmp_path / "data", taken_in(spark, [files], tmp_path / "data")) == []
    assert [one.kind for one in Dataset.open(tmp_path / "data").manifest.inputs] == ["log", "log"]


CUTS = [1, 2, 17, 100, 228, 300, 301, 400, 455]


@pytest.mark.lab
@pytest.mark.parametrize("place", share(CUTS, [228]))
def test_a_log_goes_on_in_the_next_run(spark: SparkSession, sample: bytes, place: int, tmp_path: Path) -> None:
    """Connections, fetches that wait for the next one, and what numbers tell of missing lines."""
    files = cut(sample, tmp_path / "logs", [place])
    assert differences(tmp_path / "data", taken_in(spark, [[one] for one in files], tmp_path / "data")) == []


@pytest.mark.lab
@pytest.mark.exhaustive
def test_the_stale_commit_in_five_runs(spark: SparkSession, tmp_path: Path) -> None:
    """The founding fault, from a real broker's log with a fifth of it in each run, and every 50th line missing."""
    text = gzip.decompress((SAMPLES / "request_logs" / "kafka_stale_commit.log.gz").read_bytes())
    lines = text.splitlines(keepends=True)
    kept = b"".join(one for number, one in enumerate(lines) if number % 50)
    files = cut(kept, tmp_path / "logs", [700, 1400, 2100, 2800], packed=True)
    assert differences(tmp_path / "data", taken_in(spark, [[one] for one in files], tmp_path / "data")) == []
    with wirewitness.read(tmp_path / "data") as kept_tables:
        assert "KAF103" in set(kept_tables.findings().code)


def test_hostile_lines_in_two_runs(spark: SparkSession, tmp_path: Path) -> None:
    """Lines that are too long, cut, no JSON or without sense, in both files; the rest is as offline."""
    deep = "[" * 100_000
    odd = [
        line('{"requestHeader":' + deep), line(heartbeat(totalTimeMs=1e30)), line("{nonsense}"),
        "Completed request:{\n", line('{"a":NaN}'), line(heartbeat(request={"groupId": 7})), "[no date] x\n",
    ]  # fmt: skip
    long = line(heartbeat(request={"groupId": "x" * (11 << 20)}))
    first = tmp_path / "request.log.1"
    second = tmp_path / "request.log"
    first.write_text(asks(1) + "".join(odd) + long + asks(2, 10) + asks(5, 20)[:-40])
    second.write_text(asks(7, 5000) + long[:-1] + "\n" + "".join(odd) + asks(9, 6000))
    files = taken_in(spark, [[first], [second]], tmp_path / "data")
    assert differences(tmp_path / "data", files) == []
    with wirewitness.read(tmp_path / "data", tables=["exchanges"]) as kept:
        assert len(kept.table("exchanges")) > 3


def test_the_zone_of_a_log_is_that_of_all_runs(spark: SparkSession, tmp_path: Path) -> None:
    """Five hours behind UTC, the second log begins before the first one's times as they are stored."""
    files = [tmp_path / "a.log", tmp_path / "b.log"]
    files[0].write_text("".join(asks(number, number) for number in range(20)))
    files[1].write_text("".join(asks(number, 60_000 + number) for number in range(20, 40)))
    read = ReadOptions(log_zone_ns=-5 * HOUR_NS)
    taken_in(spark, [[one] for one in files], tmp_path / "data", read)
    assert differences(tmp_path / "data", files, read) == []
    with pytest.raises(DatasetError, match="other settings \\(log_zone_ns\\)"):
        archive(files, tmp_path / "data", spark, ArchiveOptions())


def test_segments_beside_a_log_and_beside_a_capture(spark: SparkSession, tmp_path: Path) -> None:
    """In one run and in several; a transaction that ends in the next file of its partition."""
    ended = segment((0, commits(5, 6)), (2, commits(7, producer=9)), (3, end_of_transaction(9, commit=True)))
    log = tmp_path / "request.log"
    log.write_text("".join(asks(number, number) for number in range(20)))
    damaged = segment((0, numbered(40, "zstd")), (40, b"\0" * 61), (40, numbered(3)))
    cut_off = segment((99, numbered(2)), (101, batch([Sent(STORED_MS, b"k", b"v")])))[:-3]
    first = [write_segment(tmp_path, "__consumer_offsets-3", ended), write_segment(tmp_path, "orders-1", damaged)]
    second = [write_segment(tmp_path, "orders-1", cut_off, 99)]
    ways = {
        "log": [[log, *first], second],
        "capture": [[SAMPLES / "kafka_fenced_commit.pcapng"], first, second],
        "all": [[*first, *second]],
    }
    for name, runs in ways.items():
        assert differences(tmp_path / f"data-{name}", taken_in(spark, runs, tmp_path / f"data-{name}")) == [], name


NAME = "kafka_fenced_commit"
# Which files come in which run; three files of the capture, two of the log.
MIXES: dict[str, list[list[str]]] = {
    "in one run": [["c0", "c1", "c2", "l0", "l1"]],
    "the log first": [["l0", "l1"], ["c0", "c1", "c2"]],
    "the capture first": [["c0", "c1", "c2"], ["l0", "l1"]],
    "both in turns": [["c0", "l0"], ["c1", "l1"], ["c2"]],
    "a capture with a hole": [["l0", "l1", "c0"], ["c2"]],
    "with a hole, before its log": [["c0", "c2"], ["l0"], ["l1"]],
    "a log that lacks lines": [["c0", "c1", "l1"], ["c2"]],
}


@pytest.mark.lab
@pytest.mark.parametrize("mix", share(MIXES, ["both in turns"]))
def test_what_captures_and_logs_both_tell_counts_once(
    spark: SparkSession, sample: bytes, mix: str, tmp_path: Path
) -> None:
    """Whichever comes first; where one of them lacks a part, the other fills it in."""
    captures = rotated(list(packets_of(SAMPLES / f"{NAME}.pcapng")), tmp_path / "captures", 3)
    known = {f"c{number}": one for number, one in enumerate(captures)}
    known |= {f"l{number}": one for number, one in enumerate(cut(sample, tmp_path / "logs", [200]))}
    root = tmp_path / "data"
    files = taken_in(spark, [[known[name] for name in run] for run in MIXES[mix]], root)
    # Captures and logs of other runs stand as they were taken in.
    assert [one for one in differences(root, files) if one != OTHER_ORDER] == []
    with wirewitness.read(files, tables=["exchanges"]) as offline, wirewitness.read(root, tables=["exchanges"]) as kept:
        once = [[one for one in tables.remarks if "count once" in one] for tables in (offline, kept)]
    assert once[0] == once[1] != []


OTHER_ORDER = "captures: the reader gives its rows in another order"


def test_without_the_tables_that_tell_it_nothing_counts_twice(spark: SparkSession, tmp_path: Path) -> None:
    """Which of both is left out, and why, is said."""
    log = tmp_path / "request.log"
    log.write_text(asks(1))
    options = ArchiveOptions(shards=2, tables=("kafka_offset_commits",))
    summary = archive([log, SAMPLES / f"{NAME}.pcapng"], tmp_path / "data", spark, options)
    [aside] = summary.aside
    assert aside.path == str(log)
    assert "are in this dataset: without the tables messages and exchanges (--tables)" in (aside.reason or "")


def test_commands_answer_of_lines(spark: SparkSession, sample: bytes, tmp_path: Path) -> None:
    """`show`, `records`, `messages` and `extract` on a dataset of a log and a segment."""
    log = tmp_path / "request.log"
    log.write_bytes(sample)
    stored = write_segment(tmp_path, "orders-3", segment((0, numbered(3))))
    root = tmp_path / "data"
    taken_in(spark, [[log, stored]], root, ReadOptions(payload=True))
    with wirewitness.read(root, tables=["exchanges", "findings"]) as kept:
        exchange = kept.arrow("exchanges").to_pylist()[7]
        evidence = json.loads(kept.arrow("findings").to_pylist()[0]["evidence"])[0]
    shown = run("show", root, exchange["request_message_id"])
    assert f"  line     {exchange['line']} of {log}\n" in shown.stdout.decode()
    by_number = run("show", root, "--packet", f"request.log:{exchange['line']}").stdout.decode()
    assert exchange["request_message_id"] in by_number
    asked, _ = exchange_views(Opened.dataset(root), exchange["request_message_id"], payload=False)
    assert ["line", f"{exchange['line']} of request.log"] in message_data(asked, "show")["facts"]
    assert evidence["file"] == str(log)
    assert evidence["line"] > 0
    assert "v2v2v2" in run("records", root, "--payload").stdout.decode()
    none = run("extract", root, "--exchange", exchange["request_message_id"], "-o", tmp_path / "x.pcapng")
    assert (none.returncode, b"has no packets to extract" in none.stderr) == (2, True)
    log.unlink()
    gone = run("show", root, exchange["request_message_id"])
    assert (gone.returncode, gone.stderr.decode()) == (2, f"wirewitness: {log}: no such file or directory.\n")
