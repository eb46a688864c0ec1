"""Encrypted connections that are open at the end of a run: the next run goes on, and what is kept has no keys."""

from __future__ import annotations

import io
from pathlib import Path

from tests.conftest import SAMPLES
from tests.support.packets import Captured, pcap
from tests.support.tls_twin import TLS_13, Sides, twin
from tests.support.wire import packets_of
from wirewitness.analyser.archive.decode.state_data import from_table, to_table
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureStats, Source, read_batches
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.dissectors.registry import dissectors


def fed(pipeline: Pipeline, packets: list[Captured]) -> None:
    source = Source("part.pcap", stream=io.BytesIO(pcap(packets, nanoseconds=True)))
    for batch in read_batches(source, pipeline.endpoints, CaptureStats("part.pcap")):
        pipeline.feed(batch)


def complete(pipeline: Pipeline) -> list[tuple[int, str, int]]:
    try:
        rows = [row for batch in pipeline.decoded().store.tables["messages"].batches() for row in batch.to_pylist()]
        return [(row["direction"], row["operation"], row["length_bytes"]) for row in rows if row["complete"]]
    finally:
        pipeline.decoded().store.close()


def test_the_next_run_goes_on(tmp_path: Path) -> None:
    sides = Sides(TLS_13)
    encrypted, clear = twin(packets_of(SAMPLES / "mongo_healthy.pcapng"), sides)
    keylog, half = tmp_path / "keys.log", len(encrypted) // 2
    keylog.write_bytes(sides.keylog)

    def in_two_runs(packets: list[Captured], keylogs: tuple[str, ...], later: tuple[str, ...]) -> list[object]:
        first = Pipeline(dissectors(()), ["messages"], ReadOptions(keylogs=keylogs))
        fed(first, packets[:half])
        state = first.suspended(to_table)
        written = b"".join(value or b"" for value in state.column("bytes").to_pylist())
        written += "".join(state.column("value").to_pylist()).encode()
        for line in sides.keylog.splitlines():
            if not line.startswith(b"#"):
                secret = line.split()[2]
                assert secret not in written
                assert bytes.fromhex(secret.decode()) not in written
        second = Pipeline(dissectors(()), ["messages"], ReadOptions(keylogs=later))
        second.resume(from_table(state))
        fed(second, packets[half:])
        second.end()
        return sorted(complete(first) + complete(second))

    expected, keys = in_two_runs(clear, (), ()), (str(keylog),)
    assert in_two_runs(encrypted, keys, keys) == expected
    assert 0 < len(in_two_runs(encrypted, keys, ())) < len(expected)
