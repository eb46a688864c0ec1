"""Amending the parts of earlier runs gives what the same rows would have become with what is known now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import feather

from tests.conftest import SAMPLES
from tests.support.archived import rows_of_part
from wirewitness.analyser.analysis.build import Lookups, duplicate_flows, finish_batch, pieces
from wirewitness.analyser.archive.commit.amend import AmendJob, Unit, amend_part
from wirewitness.analyser.archive.commit.common import CLUSTER
from wirewitness.analyser.archive.commit.finish_stage import FACTS, SETTLED, changed_facts
from wirewitness.analyser.archive.dataset.part import Part
from wirewitness.analyser.archive.dataset.parts import write_parts
from wirewitness.analyser.archive.dataset.stage_files import put_value
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.decoding.run.decoded import Decoded
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.registry import dissectors

CONTEXT = {"mqtt_deliveries", "mongo_cursors", "mongo_transactions"}


def decoded(name: str) -> Decoded:
    return Pipeline(dissectors(()), TABLES, ReadOptions(payload=True)).run(open_captures([str(SAMPLES / name)]))


def known(read: Decoded, seed: int, topics: Mapping[str, str]) -> Lookups:
    """Facts that might be known of the flows: made up, others for each seed."""
    draw = np.random.default_rng(seed)
    flows = read.flows_table()
    ids = flows.column("flow_id").to_pylist()
    changed = {
        "flow_id": [f"{draw.integers(1 << 62):016x}" if draw.random() < 0.3 else one for one in ids],
        "duplicate_of": [ids[0] if draw.random() < 0.3 else None for _ in ids],
        "client_port": [int(draw.integers(1 << 16)) if draw.random() < 0.3 else port
                        for port in flows.column("client_port").to_pylist()],
        "server_address": [None if draw.random() < 0.3 else one for one in flows.column("server_address").to_pylist()],
    }  # fmt: skip
    for name, values in changed.items():
        place = flows.schema.get_field_index(name)
        flows = flows.set_column(place, flows.schema.field(name), pa.array(values, flows.schema.field(name).type))
    clusters = pa.array([[None, "a", "b"][draw.integers(3)] for _ in ids], pa.string())
    return Lookups(flows, clusters, topics, tuple(one.file for one in read.captures), dissectors(()))


def facts(lookups: Lookups) -> pa.Table:
    flows = lookups.flows.append_column(CLUSTER, lookups.clusters)
    return flows.select([FLOW, *FACTS]).append_column(SETTLED, pa.repeat(True, flows.num_rows))


def rows(read: Decoded, table: str, lookups: Lookups, *, hidden: bool) -> Iterator[pa.RecordBatch]:
    """What the finish stage makes of the raw rows."""
    again = duplicate_flows(lookups.flows)
    lists = TABLES[table].lists
    for batch in read.store.tables[table].batches():
        seen = pc.is_in(batch.column(FLOW), again)
        for piece in pieces(table, batch.filter(seen if hidden else pc.invert(seen))):
            flow = piece.column(FLOW)
            if lists:
                flow = flow.take(pc.list_parent_indices(piece.column(lists[0])))
            yield finish_batch(table, piece, lookups).append_column(FLOW, flow)


def counted(batches: Iterator[pa.RecordBatch]) -> Counter[str]:
    return Counter(repr(row) for batch in batches for row in batch.to_pylist())


@pytest.mark.parametrize("name", ["kafka_cluster.pcapng", "mqtt_v5_features.pcapng", "mongo_healthy.pcapng"])
def test_amended_rows_are_those_of_a_full_run(name: str, tmp_path: Path) -> None:
    read = decoded(name)
    ids = {one for table in ("kafka_partitions", "kafka_fetch_partitions", "kafka_records")
           for batch in read.store.tables[table].batches() for one in pc.unique(batch.column("topic_id")).to_pylist()
           if one is not None}  # fmt: skip
    topics = {one: "__consumer_offsets" if number % 2 else f"topic-{number}" for number, one in enumerate(sorted(ids))}
    then, now = known(read, 1, {}), known(read, 2, topics)
    work = tmp_path / "work"
    work.mkdir()
    feather.write_feather(changed_facts(facts(now), facts(then)), str(work / "changed"))
    names = {one: (None, topics[one]) for one in topics}
    again = duplicate_flows(now.flows)
    job = put_value(work / "job", AmendJob(tmp_path, tmp_path, "000002", work / "changed", names, again))
    for table in read.store.tables:
        parts = [
            part
            for hidden in (False, True)
            for part in write_parts(table, rows(read, table, then, hidden=hidden), tmp_path, "000001", hidden=hidden)
        ]
        made: list[Part] = []
        for part in parts:
            amended = amend_part(job, Unit(part))
            made += [part] if amended is None else amended.new
        for hidden in (False, True):
            files = (rows_of_part(table, tmp_path / part.path) for part in made if part.is_hidden() == hidden)
            got = counted(batch for file in files for batch in file.to_batches())
            assert got == counted(rows(read, table, now, hidden=hidden)), (table, hidden)
    assert counted(rows(read, "messages", then, hidden=False)) != counted(rows(read, "messages", now, hidden=False))


def test_what_did_not_change_is_not_touched(tmp_path: Path) -> None:
    read = decoded("mongo_healthy.pcapng")
    then = known(read, 1, {})
    first, *others = then.flows.column(FLOW).to_pylist()
    ports = [
        9 if key == first else port
        for key, port in zip([first, *others], then.flows.column("client_port").to_pylist(), strict=True)
    ]
    place = then.flows.schema.get_field_index("client_port")
    now = replace(
        then, flows=then.flows.set_column(place, "client_port", pa.array(ports, then.flows.schema.field(place).type))
    )
    feather.write_feather(changed_facts(facts(now), facts(then)), str(tmp_path / "changed"))
    again = duplicate_flows(now.flows)
    job = put_value(tmp_path / "job", AmendJob(tmp_path, tmp_path, "000002", tmp_path / "changed", {}, again))
    batches = [*rows(read, "exchanges", then, hidden=False), *rows(read, "exchanges", then, hidden=True)]
    for key in [first, *others]:
        own = [batch.filter(pc.equal(batch.column(FLOW), key)) for batch in batches]
        for part in write_parts("exchanges", own, tmp_path, f"000001-{key}"):
            assert (amend_part(job, Unit(part)) is not None) == (key == first)
    for part in write_parts("expert_infos", rows(read, "expert_infos", then, hidden=False), tmp_path, "000001"):
        assert amend_part(job, Unit(part)) is None  # it has no ports
