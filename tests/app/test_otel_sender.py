"""The program that sends spans: what it takes arrives, and an end that nobody asked for is said."""

from __future__ import annotations

import pyarrow as pa
import pytest

import analyser
from analyser.otel.exchanges import TABLES, batches
from app.cli.otel_sender import SenderProgram, Sent
from tests.conftest import SAMPLES
from tests.support.otlp_receiver import receiver


def rows() -> list[pa.RecordBatch]:
    with analyser.read(SAMPLES / "mqtt_qos2_stuck.pcapng", tables=TABLES) as analysis:
        return list(batches(analysis))


def test_rows_become_spans() -> None:
    taken = rows()
    count = sum(batch.num_rows for batch in taken)
    with receiver() as received:
        sender = SenderProgram("lab", received.url + "/v1/traces")
        sender.take(taken)
        sender.take([])
        assert sender.close() == Sent(count, 0)
        assert len(received.spans()) == count == 75


def test_a_program_that_was_ended_costs_spans_and_not_the_capture() -> None:
    sender = SenderProgram("lab", "http://127.0.0.1:9/v1/traces")
    sender.kill()
    sender.take(rows())
    with pytest.raises(RuntimeError, match="ended with status -9"):
        sender.close()
