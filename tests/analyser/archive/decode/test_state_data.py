"""What is known of open flows, kept as data: equal when it is read again, harmless when somebody else wrote it."""

from __future__ import annotations

import json
import os
import pickle
from array import array
from collections import Counter, OrderedDict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from wsproto.frame_protocol import Opcode

from tests.conftest import SAMPLES
from wirewitness.analyser.archive.commit.common import COMMON_FILE, Common, read_common, write_common
from wirewitness.analyser.archive.dataset.dataset import Change
from wirewitness.analyser.archive.dataset.place import DatasetError
from wirewitness.analyser.archive.dataset.state_files import MARK
from wirewitness.analyser.archive.decode.state_data import SCHEMA, StateError, from_table, to_table
from wirewitness.analyser.archive.run import check_state
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureStats, Source, read_batches
from wirewitness.analyser.decoding.rows.fields import row_fields
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import dissectors

FILES = ["kafka_fenced_commit.pcapng", "mongo_healthy.pcapng", "mqtt_v5_features.pcapng", "mqtt_websocket.pcapng"]


@pytest.mark.parametrize(
    "value",
    [
        None, True, 7, -(1 << 70), 1.5, float("inf"), "a\udc80\u2028", b"\0\xff", bytearray(b"x"), [1, [2]], (1, (2,)),
        {1: "a", "b": None, (1, 2): b"c"}, {1, 2}, frozenset({3}), deque([1, 2], maxlen=2), Counter("aab"), Limits(),
        np.uint64(1 << 63), Opcode.PING, OrderedDict({"b": 1, "a": 2}), array("q", [1, -1]),
    ],
    ids=repr,
)  # fmt: skip
def test_values_come_back(value: Any) -> None:
    again = from_table(to_table(value))
    assert again == value
    assert type(again) is type(value)


def test_arrays_and_what_is_shared_come_back() -> None:
    shared = [1]
    looped: list[Any] = [shared, shared, np.arange(6, dtype=np.int64).reshape(2, 3)]
    looped.append(looped)
    again = from_table(to_table(looped))
    assert again[0] is again[1]
    assert again[3] is again
    assert np.array_equal(again[2], looped[2])


@pytest.mark.parametrize("file", [one for one in FILES if (SAMPLES / one).exists()])
def test_a_capture_that_goes_on_from_its_state_gives_the_same_rows(file: str) -> None:
    """After every batch the flows are written and read again."""
    known = dissectors()

    def rows(*, suspending: bool) -> dict[str, list[Any]]:
        pipeline = Pipeline(known, list(row_fields(known)), ReadOptions())
        pipeline.next_file(0, 0)
        source = Source(file, path=SAMPLES / file)
        for batch in read_batches(source, pipeline.endpoints, CaptureStats(file)):
            half = len(batch) // 2
            for part in (slice(0, half), slice(half, None)):
                columns = {name: getattr(batch, name) for name in type(batch).__slots__}
                cut = {name: one[part] if isinstance(one, np.ndarray) else one for name, one in columns.items()}
                pipeline.feed(type(batch)(**cut))
                if suspending:
                    pipeline.resume(from_table(pipeline.suspended(to_table)))
        pipeline.end()
        store = pipeline.decoded().store
        return {name: [b.to_pylist() for b in table.batches()] for name, table in store.tables.items()}

    assert rows(suspending=True) == rows(suspending=False)


class Bomb:
    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.place),)


CRAFTED = [
    ["function", "os:system"], ["function", "wirewitness.analyser.archive.decode.decode_stage:decode_shares"],
    ["object", "os:system", [0], None], ["object", "subprocess:Popen", [0], None],
    ["object", "wirewitness.analyser.live.capturer:Capturer", [0], None],
    ["object", "wirewitness.dissectors.core.limits:os", [0], None],
    ["object", "wirewitness.analyser.tcp.closed_flows:pickle", [0], None],
    ["object", "wirewitness.analyser.tcp.flow:Flow", [9], None],
    ["list", [7]], ["list", [-1]], ["dict", 1], ["array", "O", [1]], ["array", "l", [99]], ["Dissector", "nobody"],
    ["numbers", "u"], ["numbers", "?"], ["OrderedDict", 1],
    ["x"], [], ["tuple", [1]],
]  # fmt: skip


@pytest.mark.parametrize("row", CRAFTED, ids=json.dumps)
def test_a_crafted_state_is_refused(row: list[Any]) -> None:
    values = [json.dumps(["list"]), json.dumps(row), json.dumps([1])]
    table = pa.table([pa.array(values), pa.array([None, b"\0", None], pa.binary())], schema=SCHEMA)
    with pytest.raises(StateError):
        from_table(table)


def test_a_state_of_an_earlier_version_is_not_run(tmp_path: Path) -> None:
    """Its pickle would make a folder."""
    planted = tmp_path / "planted"
    with Change.begin(tmp_path / "data") as change:
        (tmp_path / "old" / "share-0").mkdir(parents=True)
        crafted = zstandard.compress(pickle.dumps(Bomb(planted)))
        (tmp_path / "old" / "share-0" / "state.zst").write_bytes(crafted)
        change.previous_state = tmp_path / "old"
        with pytest.raises(DatasetError, match="make the dataset anew from its captures"):
            check_state(change)
    assert not planted.exists()


def test_what_shards_tell_together_is_data(tmp_path: Path) -> None:
    common = Common(("a.pcap", "b.log"), frozenset({1}), ((1, 7),), {"id": "orders"})
    write_common(common, tmp_path)
    assert read_common(tmp_path) == common
    crafted = pickle.dumps(Bomb(tmp_path / "planted"))
    wrong = json.dumps({"files": 1, "logs": [], "covered": [], "topics": {}, **MARK}).encode()
    for text in (crafted, b"{}", b"[]", wrong, json.dumps(MARK).encode(), b"[" * 100_000):
        (tmp_path / COMMON_FILE).write_bytes(text)
        with pytest.raises(DatasetError, match="make the dataset anew"):
            read_common(tmp_path)
    assert not (tmp_path / "planted").exists()
