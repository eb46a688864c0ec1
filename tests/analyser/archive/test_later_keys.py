"""Keys that come after their captures: the dataset is what it would be had they been there from the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.archived import differences
from tests.support.rotated import rotated
from tests.support.tls_twin import TLS_12, Sides, twin
from tests.support.two_points import at_two_points
from tests.support.wire import packets_of
from wirewitness.analyser.archive import run as run_module
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.ingest.brought import head_stats
from wirewitness.analyser.archive.run import ArchiveOptions, Opened, Summary, archive
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TLS = SAMPLES / "tls" / "kafka_tls.pcapng"
NO_KEYS = ReadOptions()
# Other names of runs stand in them.
OF_RUNS = {"findings_history"}
# Each run takes its time: these need no context and no findings.
FEW = ("exchanges", "expert_infos", "flows", "messages")


def keys_of(capture: Path, folder: Path) -> Path:
    """The key log that a sample brings along, as a file of its own."""
    (source,) = open_captures([capture])
    keylog = folder / "keys.log"
    keylog.write_bytes(b"".join(secret.data for secret in head_stats(source).secrets))
    return keylog


def taken(
    spark: SparkSession, captures: Sequence[Path], root: Path, read: ReadOptions, tables: tuple[str, ...] | None = None
) -> Summary:
    options = ArchiveOptions(shards=3, range_bytes=20_000, read=read, tables=tables)
    summary = archive(captures, root, spark, options)
    assert (summary.aside, summary.failures, summary.faults) == ([], [], [])
    return summary


def decryption(root: Path) -> set[str | None]:
    with wirewitness.read(root, tables=["flows"]) as kept:
        return {*kept.arrow("flows").column("tls_decryption").to_pylist()}


def differing(one: Path, other: Path) -> list[str]:
    """Tables of two datasets that are not the same, row by row."""
    with wirewitness.read(one) as first, wirewitness.read(other) as second:
        assert first.tables() == second.tables()
        return [name for name in first.tables() if name not in OF_RUNS
                and not first.arrow(name).equals(second.arrow(name))]  # fmt: skip


@pytest.mark.parametrize(("files", "runs"), [(1, 1), (6, 3)])
def test_keys_that_come_later_open_what_was_archived(
    spark: SparkSession, files: int, runs: int, tmp_path: Path
) -> None:
    captures = rotated(packets_of(TLS), tmp_path / "captures", files)
    captures.sort(key=lambda path: open_captures([path])[0].first_ns or 0)
    keylog = keys_of(TLS, tmp_path)
    read, later, at_once = ReadOptions(keylogs=(str(keylog),)), tmp_path / "later", tmp_path / "at-once"
    for run in range(runs):
        known = captures[: files * (run + 1) // runs]
        taken(spark, known, later, NO_KEYS)
        taken(spark, known, at_once, read)
    assert differences(later, captures) == []
    assert decryption(later) == {"no key"}
    summary = taken(spark, captures, later, read)
    assert (summary.files, summary.known) == ([], files)
    with wirewitness.read(later, tables=["flows"]) as kept:
        assert summary.opened == Opened(files, kept.arrow("flows").num_rows)
    assert decryption(later) == {"decrypted"}
    assert differences(later, captures, read) == []
    assert differing(later, at_once) == []
    before = Dataset.open(later).manifest
    summary = taken(spark, captures, later, read)
    assert (summary.run, summary.opened) == (None, Opened())
    assert Dataset.open(later).manifest == before
    written = b"".join(path.read_bytes() for path in later.rglob("*") if path.is_file())
    for line in keylog.read_bytes().splitlines():
        if not line.startswith(b"#"):
            secret = line.split()[2]
            assert secret not in written
            assert bytes.fromhex(secret.decode()) not in written


def test_only_the_captures_that_keys_open_are_read_again(spark: SparkSession, tmp_path: Path) -> None:
    """Others are not even there any more. One connection goes on in a capture that comes together with the keys; each
    was seen at two points, so half of all rows count for nobody."""
    foreign, _ = twin(packets_of(SAMPLES / "mongo_healthy.pcapng"), Sides(TLS_12))
    clear = packets_of(SAMPLES / "mqtt_faults.pcapng")
    others = [*rotated(clear, tmp_path / "clear", 1), *rotated(foreign, tmp_path / "foreign", 2)]
    captures = sorted(rotated(at_two_points(packets_of(TLS), packets_of(TLS)), tmp_path / "captures", 3),
                      key=lambda path: open_captures([path])[0].first_ns or 0)  # fmt: skip
    read, root = ReadOptions(keylogs=(str(keys_of(TLS, tmp_path)),)), tmp_path / "dataset"
    taken(spark, [*others, *captures[:2]], root, NO_KEYS, FEW)
    contents = {path: path.read_bytes() for path in others}
    for path in others:
        path.unlink()
    summary = taken(spark, captures, root, read, FEW)
    assert ([one.path for one in summary.files], summary.known) == ([str(captures[2])], 2)
    assert (summary.opened.captures, summary.remarks) == (2, [])
    for path, content in contents.items():
        path.write_bytes(content)
    assert decryption(root) == {None, "no key", "decrypted"}
    assert "messages" in Dataset.open(root).manifest.hidden
    # What no key opened is not read again: it is told as without keys, and not that a log lacks its secret.
    with (
        wirewitness.read([*others, *captures], options=read) as opened,
        wirewitness.read([*others, *captures], options=NO_KEYS) as locked,
        wirewitness.read(root) as kept,
    ):
        flows = kept.arrow("flows").filter(pc.field("tls_decryption") == "decrypted").column("flow_id")
        for name in FEW:
            found, *expected = (analysis.arrow(name) for analysis in (kept, opened, locked))
            is_opened = [pc.is_in(rows.column("flow_id"), flows.combine_chunks()) for rows in (found, *expected)]
            assert found.filter(is_opened[0]).equals(expected[0].filter(is_opened[1])), name
            assert found.filter(pc.invert(is_opened[0])).equals(expected[1].filter(pc.invert(is_opened[2]))), name


def test_a_run_that_fails_leaves_the_dataset_as_it_was(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does one that misses the capture."""
    sample = SAMPLES / "tls" / "mongo_tls.pcapng"
    (capture,) = rotated(packets_of(sample), tmp_path / "captures", 1)
    root, read = tmp_path / "dataset", ReadOptions(keylogs=(str(keys_of(sample, tmp_path)),))

    def run(path: Path, read: ReadOptions) -> Summary:
        return archive([path], root, spark, ArchiveOptions(shards=3, tables=FEW, read=read))

    def exchanges(place: Path, read: ReadOptions) -> list[str]:
        with wirewitness.read(place, tables=["exchanges"], options=read) as analysis:
            return [*map(repr, analysis.arrow("exchanges").to_pylist())]

    run(capture, NO_KEYS)
    before = Dataset.open(root).manifest
    elsewhere = capture.rename(tmp_path / "moved.pcap")
    summary = run(elsewhere, read)
    text = "is not there as it was taken in: connections in it that the keys open stay encrypted."
    assert (summary.run, summary.opened, summary.remarks) == (None, Opened(), [f"{capture} {text}"])
    elsewhere.rename(capture)
    with monkeypatch.context() as broken:

        def fails(*_: object) -> None:
            raise InterruptedError("in between")

        broken.setattr(run_module, "run_aggregates", fails)
        with pytest.raises(InterruptedError):
            run(capture, read)
    assert (Dataset.open(root).manifest, exchanges(root, NO_KEYS)) == (before, [])
    assert run(capture, read).opened == Opened(1, before.rows("flows"))
    expected = exchanges(capture, read)
    assert (exchanges(root, NO_KEYS), len(expected) > 5) == (expected, True)
