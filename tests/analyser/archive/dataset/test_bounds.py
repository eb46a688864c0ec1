"""Files of a state and a manifest that would take more memory than any run leaves: refused in a line before they do."""

from __future__ import annotations

import json
import re
import resource
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import feather

from tests.conftest import ROOT
from tests.support.replay import replay
from wirewitness.analyser.archive.aggregate.derived import keep_rows
from wirewitness.analyser.archive.commit.common import COMMON_FILE, Common, read_common, write_common
from wirewitness.analyser.archive.commit.workloads_kept import IDENTITIES_FILE, kept_identities
from wirewitness.analyser.archive.dataset import bounds, manifest, state_files
from wirewitness.analyser.archive.dataset.arrow_sizes import as_stream, held_bytes
from wirewitness.analyser.archive.dataset.bounds import state_values
from wirewitness.analyser.archive.dataset.manifest import InputFile, Manifest, read_manifest
from wirewitness.analyser.archive.dataset.place import MANIFEST, DatasetError
from wirewitness.analyser.archive.dataset.state_files import (
    MARK,
    STATE_FORMAT,
    check_summary,
    kept_json,
    kept_table,
    marked,
    put_kept,
    put_kept_json,
)
from wirewitness.analyser.archive.decode.state_data import StateError, from_table, to_table
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureStats, Source, read_batches
from wirewitness.analyser.capture.workloads.seen import MAX_SEEN, End
from wirewitness.analyser.capture.workloads.workload import Identity
from wirewitness.analyser.decoding.rows.fields import row_fields
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.tcp.tcp import FIN, RST
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import dissectors

ANEW = r"make the dataset anew from its captures \(archive --rebuild\)"
ZSTD = b"\x28\xb5\x2f\xfd"  # how its data begin
TEXT = pa.schema([("value", pa.string()), ("bytes", pa.binary())])


def bomb(path: Path, size: int) -> Path:
    """Rows of zeros, some thousand times smaller than in memory."""
    table = pa.table([pa.array([None], pa.string()), pa.array([bytes(size)], pa.binary())], schema=TEXT)
    feather.write_feather(marked(table), str(path), compression="zstd")
    return path


@pytest.mark.parametrize("compression", ["zstd", "lz4", "uncompressed"])
def test_sizes_are_those_of_the_buffers(tmp_path: Path, compression: str) -> None:
    names = pa.array(["a", "b", None] * 400).dictionary_encode()
    table = pa.table({"names": names, "lists": [[1, 2], [], None] * 400, "flags": [True, False, True] * 400})
    feather.write_feather(table, str(tmp_path / "rows"), compression=compression, chunksize=500)
    stream = as_stream(pa.py_buffer((tmp_path / "rows").read_bytes()))
    held = held_bytes(stream)
    read = pa.ipc.open_stream(stream).read_all()
    assert read.equals(table)
    buffers = [one for column in read.columns for chunk in column.chunks for one in chunk.buffers() if one is not None]
    dictionary = names.dictionary.nbytes
    assert sum(one.size for one in buffers) <= held + 64 * len(buffers)
    assert held >= table.get_total_buffer_size() - dictionary


def test_a_file_that_unpacks_to_far_more_is_not_unpacked(tmp_path: Path) -> None:
    """In a process that could not."""
    path = bomb(tmp_path / "state.arrow", 1 << 28)
    assert path.stat().st_size < 100_000
    with pytest.raises(DatasetError, match=f"would take 268,435,... bytes of memory, and .* are the most: {ANEW}"):
        kept_table(path, TEXT)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DatasetError):
        kept_table(path, TEXT)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_what_stands_before_a_buffer_need_not_be_true(tmp_path: Path) -> None:
    path = bomb(tmp_path / "state.arrow", 1 << 20)
    data, told = path.read_bytes(), struct.pack("<q", 1 << 20) + ZSTD
    assert data.count(told) == 1
    for size, says in ((1 << 60, "would take"), (-2, "is no state"), (0, "is no state"), (1 << 19, "is no state")):
        path.write_bytes(data.replace(told, struct.pack("<q", size) + ZSTD))
        with pytest.raises(DatasetError, match=says):
            kept_table(path, TEXT)


@pytest.mark.parametrize("at", range(0, 900, 7))
def test_a_damaged_file_is_told(tmp_path: Path, at: int) -> None:
    path = tmp_path / "rows.arrow"
    put_kept(path, pa.table([pa.array(["a", "b"]), pa.array([b"c", None], pa.binary())], schema=TEXT))
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 0xFF
    path.write_bytes(data)
    with suppress(DatasetError):  # not all of its bytes are looked at
        kept_table(path, TEXT)


def test_files_that_are_too_large_are_not_read(tmp_path: Path) -> None:
    """They are gaps: no disk holds what they would take."""
    for name, most in (
        (COMMON_FILE, bounds.COMMON.bytes),
        (MANIFEST, bounds.MANIFEST.bytes),
        ("a", bounds.STATE.bytes),
    ):
        with (tmp_path / name).open("wb") as file:
            file.truncate(most + 1)
    said = "bytes, and .* are the most"
    with pytest.raises(DatasetError, match=said):
        read_common(tmp_path)
    with pytest.raises(DatasetError, match=said):
        read_manifest(tmp_path)
    with pytest.raises(DatasetError, match=said):
        kept_table(tmp_path / "a", TEXT)


@pytest.mark.parametrize("text", ['{"inputs": [' + "[]," * 9_000_000 + "1]}", "[" + "{}," * 9_000_000 + "1]"])
def test_json_of_more_values_than_a_manifest_has(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    (tmp_path / COMMON_FILE).write_text(text)
    with pytest.raises(DatasetError, match="more than 16,000,000 values"):
        read_manifest(tmp_path)
    with pytest.raises(DatasetError, match="more than 16,000,000 values"):
        read_common(tmp_path)


def test_what_is_known_of_connections_has_no_more_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "STATE_VALUES", 1000)
    assert from_table(to_table([[]] * 300)) == [[]] * 300
    with pytest.raises(StateError, match="more than 1,000 values"):
        from_table(to_table([[]] * 600))


def test_rows_within_the_state_are_not_packed() -> None:
    rows = pa.record_batch({"a": np.zeros(1 << 20, np.int64)})
    assert from_table(to_table(rows)).equals(rows)
    packed = pa.BufferOutputStream()
    with pa.ipc.new_stream(packed, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(rows)
    values = [json.dumps(["batch"]), json.dumps([0])]
    table = pa.table([pa.array(values), pa.array([packed.getvalue().to_pybytes(), None], pa.binary())], schema=TEXT)
    with pytest.raises(StateError, match="packed"):
        from_table(table)


def test_more_identities_than_are_kept(tmp_path: Path) -> None:
    numbers = ("port", "peer_port", "pid", "first_ns", "last_ns")
    count = MAX_SEEN + 1
    columns: dict[str, Any] = {
        name: pa.nulls(count, pa.int64() if name in numbers else pa.string())
        for name in (*End._fields, *Identity._fields, "first_ns", "last_ns")
    }
    columns["pid"] = np.random.default_rng(1).integers(0, 1 << 31, count)
    put_kept(tmp_path / IDENTITIES_FILE, pa.table(columns))
    with pytest.raises(DatasetError, match=f"has {count:,} rows, and {MAX_SEEN:,} are the most"):
        kept_identities(tmp_path)


def test_summaries_of_hours_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    con = duckdb.connect(config={"temp_directory": str(tmp_path)})
    keep_rows(con, "SELECT * FROM range(20)", tmp_path / "a.parquet", mark=MARK)
    check_summary(tmp_path / "a.parquet")
    monkeypatch.setattr(state_files, "SUMMARY_ROWS", 19)
    with pytest.raises(DatasetError, match="has 20 rows, and 19 are the most"):
        check_summary(tmp_path / "a.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(DatasetError, match="is no state"):
        check_summary(tmp_path / "a.parquet")


def test_every_file_of_a_state_says_its_version(tmp_path: Path) -> None:
    before = {"state": str(STATE_FORMAT - 1)}
    rows = pa.table([pa.array(["a"]), pa.array([b"b"], pa.binary())], schema=TEXT)
    con = duckdb.connect(config={"temp_directory": str(tmp_path)})
    told = {"files": [], "logs": [], "covered": [[1, 2]], "topics": {}}
    for metadata in ({}, before):
        feather.write_feather(rows.replace_schema_metadata(metadata), str(tmp_path / "rows.arrow"))
        (tmp_path / COMMON_FILE).write_text(json.dumps({**told, **metadata}))
        keep_rows(con, "SELECT 1", tmp_path / "a.parquet", mark=metadata)
        for read in (
            lambda: kept_table(tmp_path / "rows.arrow", TEXT),
            lambda: read_common(tmp_path),
            lambda: check_summary(tmp_path / "a.parquet"),
        ):
            with pytest.raises(DatasetError, match=f"another version.*{ANEW}"):
                read()
    write_common(Common((), frozenset(), ((1, 2),), {}), tmp_path)
    assert read_common(tmp_path).covered == ((1, 2),)
    put_kept_json(tmp_path / "hours.json", {"a": 1}, bounds.HOURS)
    assert kept_json(tmp_path / "hours.json", bounds.HOURS)["a"] == 1


def test_a_capture_for_each_minute_of_a_year_fits_into_the_manifest(tmp_path: Path) -> None:
    """And into what a state keeps of their names. A hundredth of them is written."""
    count, of_year = 5_256, 525_600
    names = [f"s3://company-captures/production/eu-central/2026/11/26/broker-1/{n:08}.pcapng" for n in range(count)]
    inputs = tuple(
        InputFile(one, "k" * 40, 1 << 30, 10**6, 10**18, 10**18, "read", None, "000001", tag="t" * 40) for one in names
    )
    (tmp_path / MANIFEST).write_text(text := Manifest(inputs=inputs).text())
    assert len(read_manifest(tmp_path).inputs) == count
    write_common(Common(tuple(names), frozenset(), (), {}), tmp_path)
    for whole, bound in ((text, bounds.MANIFEST), ((tmp_path / COMMON_FILE).read_text(), bounds.COMMON)):
        assert len(whole) * (of_year // count) < bound.bytes
        assert sum(map(whole.count, ",[{")) * (of_year // count) < bound.values


def test_short_values_are_not_many(tmp_path: Path) -> None:
    """A list of three bytes takes sixty."""
    values = pa.array([json.dumps([[]] * 1_000_000, separators=(",", ":"))] * 20 + ["[0]"])
    with pytest.raises(StateError, match="values"):
        from_table(pa.table([values, pa.nulls(21, pa.binary())], schema=TEXT))


def test_a_hundred_thousand_open_connections_fit_into_one_shard(tmp_path: Path) -> None:
    """So many are the most that a process keeps open. Two hundred are measured."""
    count, most = 200, Limits().max_open_flows
    replay(tmp_path / "a.pcap", "flows", flows=count)
    known = dissectors()
    pipeline = Pipeline(known, [*row_fields(known)], ReadOptions())
    pipeline.next_file(0, 0)
    source = Source("a", path=tmp_path / "a.pcap")
    for batch in read_batches(source, pipeline.endpoints, CaptureStats("a")):
        columns = {name: getattr(batch, name) for name in type(batch).__slots__}
        goes_on = batch.flags & (FIN | RST) == 0
        pipeline.feed(type(batch)(**{
            name: one[goes_on] if isinstance(one, np.ndarray) and len(one) == len(goes_on) else one
            for name, one in columns.items()
        }))  # fmt: skip
    assert pipeline.open_flows >= count
    table = pipeline.suspended(to_table)
    put_kept(tmp_path / "state.arrow", table)
    values, factor = table.column("value"), most // count
    assert table.num_rows * factor < bounds.STATE.rows / 4
    assert table.nbytes * factor < bounds.STATE.held / 4
    assert (tmp_path / "state.arrow").stat().st_size * factor < bounds.STATE.bytes / 4
    held = sum(pc.sum(pc.count_substring(values, one)).as_py() for one in ",[{")
    assert held * factor < bounds.STATE_VALUES / 3
    assert held < (state_values(values.nbytes) - bounds.STATE_VALUES_SLACK) / 2


def test_nothing_is_written_that_would_not_be_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = bounds.Text(1000, 20)
    with pytest.raises(ValueError, match="more than 20 values"):
        put_kept_json(tmp_path / "a", {"a": [1] * 20}, few)
    monkeypatch.setattr(manifest, "BOUND", few)
    one = InputFile("a", "b", 1, 1, 1, 1, "read", None, "000001")
    with pytest.raises(DatasetError, match="begin another dataset"):
        Manifest(inputs=(one,) * 10).text()
    assert not (tmp_path / "a").exists()


def test_the_page_of_limits_has_these_numbers() -> None:
    page = (ROOT / "docs" / "limits.md").read_text()
    rows = dict(re.findall(r"^\| (`[^|]+?) \| ([^|]+?) \|$", page.partition("## Datasets")[2], re.MULTILINE))
    for name, bound in (("`wirewitness.json`, `common.json`", bounds.MANIFEST), ("`hours/*.json`", bounds.HOURS)):
        assert rows[name] == f"{bound.bytes >> 20} MiB; {bound.values:,} values"
    assert bounds.COMMON == bounds.MANIFEST
    state = bounds.STATE
    assert rows["`*.arrow`"] == (
        f"{state.bytes >> 30} GiB; {state.rows:,} rows; in memory {state.ratio} times the file and "
        f"{state.slack >> 20} MiB more, and {state.held >> 30} GiB"
    )
    assert f"{bounds.STATE_VALUES_SLACK:,} values" in rows["`state.arrow`"]
    assert f"{bounds.STATE_VALUES:,} in all" in rows["`state.arrow`"]
    assert f"{MAX_SEEN:,} rows" in rows["`owners.arrow`"]
    assert rows["`hours/*.parquet`"].startswith(f"{bounds.SUMMARY_ROWS:,} rows")
    assert rows["`_delta_log/*.checkpoint.parquet`"] == (
        f"{bounds.CHECKPOINT_SLACK:,} rows and one more for {bounds.BYTES_OF_FILE} bytes; not asked of those in a store"
    )
    whole = f"{bounds.WHOLE_SLACK:,} rows each and one more for {bounds.BYTES_OF_WHOLE} bytes of their parts"
    assert rows[", ".join(f"`{name}`" for name in bounds.WHOLE)] == whole
