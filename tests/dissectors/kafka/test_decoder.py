"""One Kafka connection, told as frames: what becomes of requests and responses."""

from __future__ import annotations

import pickle
import struct
from typing import Any

import pytest

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, CORE_ROWS, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.decoder import KafkaDecoder
from wirewitness.dissectors.kafka.rows.fields import KAFKA_ROWS

HEARTBEAT_V0 = bytes.fromhex("0001 67000000070001 6d")  # group "g", generation 7, member "m"
HEARTBEAT_OK = bytes.fromhex("0000")
HEARTBEAT_REBALANCE = bytes.fromhex("001b")
# OffsetCommit v2: group g, generation 7, member m, retention -1, topic t: partition 3 at 100
COMMIT_V2 = bytes.fromhex(
    "0001 67000000070001 6dffffffffffffffff00000001 0001 7400000001 00000003 0000000000000064 ffff"
)
COMMIT_OK = bytes.fromhex("00000001 0001 7400000001 00000003 0000")
COMMIT_FENCED = bytes.fromhex("00000001 0001 7400000001 00000003 0016")
# Produce v3: no transactional id, acks, timeout 1 s, no topics
PRODUCE_ACKS_0 = bytes.fromhex("ffff 0000 000003e8 00000000")


class Wire:
    """Feeds frames one by one and keeps what comes out."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.out = Sink(["messages", "exchanges", "expert_infos", *KAFKA_ROWS])
        self.decoder = KafkaDecoder(limits or Limits())
        self._at = [0, 0]
        self._packet = 0

    def request(self, key: int, version: int, correlation: int, body: bytes, *, complete: bool = True) -> Wire:
        head = struct.pack(">hhih", key, version, correlation, 1) + b"c"
        return self._frame(CLIENT_TO_SERVER, head + body, complete)

    def response(self, correlation: int, body: bytes, *, complete: bool = True) -> Wire:
        return self._frame(SERVER_TO_CLIENT, struct.pack(">i", correlation) + body, complete)

    def raw(self, direction: int, frame: bytes) -> Wire:
        return self._frame(direction, frame, True)

    def finish(self) -> Wire:
        self.decoder.finish(self.out)
        return self

    def _frame(self, direction: int, content: bytes, complete: bool) -> Wire:
        self._packet += 1
        data = b"noise" + struct.pack(">i", len(content)) + content + b"noise"
        offset, size = self._at[direction], len(content) + 4
        packet = self._packet
        frame = Frame(
            packet, direction, data, 5, 5 + size, offset, packet, packet, packet * 1_000_000, complete
        )  # fmt: skip
        self._at[direction] += size
        self.decoder.feed([frame], self.out)
        return self

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        names = {**CORE_ROWS, **KAFKA_ROWS}[table].names
        places = [names.index(column) for column in columns]
        return [tuple(row[place] for place in places) for row in self.out.rows(table) or ()]

    def exchanges(self) -> list[tuple[Any, ...]]:
        return self.rows("exchanges", "operation", "version", "status", "error_code", "error_name")

    def remarks(self) -> list[str]:
        return [row[6] for row in self.out.rows("expert_infos") or ()]


def test_a_request_and_its_response_are_an_exchange() -> None:
    wire = Wire().request(12, 0, 9, HEARTBEAT_V0).response(9, HEARTBEAT_OK)
    assert wire.exchanges() == [("Heartbeat", "0", "ok", 0, "NONE")]
    assert wire.rows("exchanges", "request_packet", "response_packet", "ts", "ts_response", "client_id") == [
        (1, 2, 1_000_000, 2_000_000, "c")
    ]
    assert wire.rows("kafka_group_events", "event", "group_id", "member_id", "generation", "error_code") == [
        ("heartbeat", "g", "m", 7, 0)
    ]
    assert wire.rows("messages", "role", "operation", "correlation_id", "client_id") == [
        ("request", "Heartbeat", 9, "c"),
        ("response", "Heartbeat", 9, "c"),
    ]
    assert wire.remarks() == []


def test_pipelined_requests_pair_by_correlation_id() -> None:
    wire = Wire().request(12, 0, 1, HEARTBEAT_V0).request(8, 2, 2, COMMIT_V2)
    wire.response(1, HEARTBEAT_REBALANCE).response(2, COMMIT_FENCED)
    assert wire.exchanges() == [
        ("Heartbeat", "0", "error", 27, "REBALANCE_IN_PROGRESS"),
        ("OffsetCommit", "2", "error", 22, "ILLEGAL_GENERATION"),
    ]
    columns = ("group_id", "member_id", "generation", "topic", "partition", "committed_offset", "error_code")
    assert wire.rows("kafka_offset_commits", *columns) == [("g", "m", 7, "t", 3, 100, 22)]


def test_a_commit_without_answer_is_a_row_without_error() -> None:
    wire = Wire().request(8, 2, 2, COMMIT_V2).finish()
    assert wire.exchanges() == [("OffsetCommit", "2", "unanswered", None, None)]
    assert wire.rows("kafka_offset_commits", "committed_offset", "error_code", "ts_response") == [(100, None, None)]


def test_a_response_without_request_is_an_orphan() -> None:
    wire = Wire().response(4, COMMIT_OK).finish()
    assert wire.exchanges() == [(None, None, "orphan", None, None)]
    assert wire.rows("messages", "role", "operation", "error") == [
        ("response", None, "the request is not in the capture")
    ]


def test_acks_0_has_no_response_by_design() -> None:
    wire = Wire().request(0, 3, 5, PRODUCE_ACKS_0).finish()
    assert wire.exchanges() == [("Produce", "3", "one_way", None, None)]


def test_a_correlation_id_used_again_ends_the_older_request() -> None:
    wire = Wire().request(12, 0, 1, HEARTBEAT_V0).request(8, 2, 1, COMMIT_V2).response(1, COMMIT_OK).finish()
    assert [row[:3] for row in wire.exchanges()] == [
        ("Heartbeat", "0", "unanswered"),
        ("OffsetCommit", "2", "ok"),
    ]


@pytest.mark.parametrize(
    ("key", "version", "operation", "code"),
    [(200, 0, "Key 200", "unknown_api_key"), (8, 99, "OffsetCommit", "unknown_version")],
    ids=["key", "version"],
)
def test_unknown_keys_and_versions_are_counted_and_never_guessed(
    key: int, version: int, operation: str, code: str
) -> None:
    wire = Wire().request(key, version, 3, b"\0\x02\x03").response(3, b"\0" + b"\xff" * 9)
    wire.request(key, version, 4, b"\0\x02\x03").response(4, b"\0" + b"\xff" * 9)
    assert wire.exchanges() == [(operation, str(version), "ok", None, None)] * 2
    assert wire.remarks() == [code]
    assert wire.rows("kafka_offset_commits", "topic") == []


def test_a_body_that_is_not_what_it_says_is_malformed_and_still_paired() -> None:
    wire = Wire().request(8, 2, 3, b"\x7f\xff" + COMMIT_V2).response(3, COMMIT_OK)
    assert wire.exchanges() == [("OffsetCommit", "2", "ok", 0, "NONE")]
    assert wire.remarks() == ["malformed_message"]
    assert wire.rows("messages", "error")[0][0]


def test_bytes_behind_the_last_field_are_remarked() -> None:
    wire = Wire().request(12, 0, 1, HEARTBEAT_V0 + b"\0\0").response(1, HEARTBEAT_OK)
    assert wire.remarks() == ["trailing_bytes"]


def test_a_cut_request_is_kept_with_what_its_header_says() -> None:
    wire = Wire().request(8, 2, 3, COMMIT_V2[:20], complete=False).response(3, COMMIT_OK)
    assert wire.exchanges() == [("OffsetCommit", "2", "ok", 0, "NONE")]
    assert wire.rows("messages", "operation", "complete")[0] == ("OffsetCommit", False)
    assert wire.remarks() == []


@pytest.mark.parametrize("frame", [b"", b"\0", b"\0\x08\0\x02\0\0"], ids=["empty", "one byte", "half a header"])
@pytest.mark.parametrize("direction", [CLIENT_TO_SERVER, SERVER_TO_CLIENT], ids=["request", "response"])
def test_frames_too_short_for_a_header_do_not_raise(direction: int, frame: bytes) -> None:
    wire = Wire().raw(direction, frame).request(12, 0, 1, HEARTBEAT_V0).response(1, HEARTBEAT_OK)
    assert ("Heartbeat", "0", "ok", 0, "NONE") in wire.exchanges()


def test_outstanding_requests_are_bounded() -> None:
    wire = Wire(Limits(max_outstanding=10))
    for correlation in range(25):
        wire.request(12, 0, correlation, HEARTBEAT_V0)
    assert len(wire.exchanges()) == 15
    assert set(wire.remarks()) == {"outstanding_requests"}


def test_answers_come_in_order_so_what_is_older_was_lost() -> None:
    """A correlation id may come again, as in re-authentication; the request that had it before is not meant."""
    wire = Wire().request(18, 0, 5, b"").request(12, 0, 6, HEARTBEAT_V0).response(6, HEARTBEAT_OK)
    wire.response(5, HEARTBEAT_OK).finish()
    told = sorted((row[0], row[2]) for row in wire.exchanges() if row[0] is not None)
    assert told == [("ApiVersions", "unanswered"), ("Heartbeat", "ok")]
    assert ("orphan",) in wire.rows("exchanges", "status")
    assert wire.remarks() == []


def overtaken(wire: Wire) -> Wire:
    """A commit and a heartbeat; the heartbeat is answered first."""
    return wire.request(8, 2, 1, COMMIT_V2).request(12, 0, 2, HEARTBEAT_V0).response(2, HEARTBEAT_OK)


def test_an_answer_out_of_order_belongs_to_its_request_and_is_remarked_on() -> None:
    wire = overtaken(Wire()).response(1, COMMIT_OK).finish()
    assert [row[:3] for row in wire.exchanges()] == [("Heartbeat", "0", "ok"), ("OffsetCommit", "2", "ok")]
    assert wire.remarks() == ["answer_out_of_order"]
    (text, packet), *_ = wire.rows("expert_infos", "text", "packet")
    assert (text, packet) == ("OffsetCommit (correlation id 1) is answered after a request that was sent later", 4)
    wire.request(12, 0, 3, HEARTBEAT_V0).response(3, HEARTBEAT_OK)
    assert wire.remarks() == ["answer_out_of_order"], "what comes in order is in order"


def test_after_the_capture_lost_bytes_nobody_knows_the_order() -> None:
    wire = Wire().request(12, 0, 9, HEARTBEAT_V0).response(9, HEARTBEAT_OK)
    wire.decoder.boundary(SERVER_TO_CLIENT, b"\0\0\0\6", 0, False)
    overtaken(wire).response(1, COMMIT_OK).finish()
    assert [row[2] for row in wire.exchanges()] == ["ok", "unanswered", "ok", "orphan"]
    assert wire.remarks() == []


def test_a_connection_joined_in_the_middle_lost_nothing() -> None:
    wire = Wire()
    for direction in (CLIENT_TO_SERVER, SERVER_TO_CLIENT):
        wire.decoder.boundary(direction, b"\0\0\0\6", 0, False)
    wire.response(0, HEARTBEAT_OK)
    assert overtaken(wire).response(1, COMMIT_OK).remarks() == ["answer_out_of_order"]


def test_answers_or_requests_alone_are_in_no_order() -> None:
    answers, requests = Wire(), Wire()
    for correlation in (2, 1, 4, 3):
        answers.response(correlation, HEARTBEAT_OK)
        requests.request(12, 0, correlation, HEARTBEAT_V0)
    assert (answers.finish().remarks(), requests.finish().remarks()) == ([], [])


def test_a_response_of_another_form_answers_no_request_that_was_overtaken() -> None:
    wire = overtaken(Wire()).response(1, HEARTBEAT_OK).finish()
    assert sorted(row[2] for row in wire.exchanges()) == ["ok", "orphan", "unanswered"]
    assert wire.remarks() == []


def test_without_any_response_requests_need_not_wait() -> None:
    wire = Wire(Limits(max_unheard=2))
    for correlation in range(5):
        wire.request(12, 0, correlation, HEARTBEAT_V0)
    assert wire.rows("exchanges", "status") == [("unanswered",)] * 3
    wire.response(3, HEARTBEAT_OK).response(4, HEARTBEAT_OK)
    for correlation in range(5, 10):
        wire.request(12, 0, correlation, HEARTBEAT_V0)
    assert wire.rows("exchanges", "status")[3:] == [("ok",)] * 2


def test_early_responses_are_bounded_in_bytes() -> None:
    wire = Wire(Limits(max_early_bytes=2000))
    for correlation in range(4):
        wire.response(correlation, bytes(700))
    wire.response(4, bytes(5000))
    assert wire.rows("exchanges", "status") == [("orphan",)] * 5
    wire.response(5, HEARTBEAT_OK).request(12, 0, 5, HEARTBEAT_V0)
    assert wire.rows("exchanges", "status")[5:] == [("ok",)]


def test_rows_leave_memory_between_two_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirewitness.dissectors.kafka.rows.api_rows.MAX_HELD_ROWS", 3)
    wire = Wire()
    left: list[str] = []
    wire.out.drain = lambda table: left.append(table) or (wire.out.rows(table) or []).clear()  # type: ignore[func-returns-value]
    for correlation in range(9):
        wire.request(8, 2, correlation, COMMIT_V2).response(correlation, COMMIT_OK)
    assert left == ["kafka_offset_commits"] * 2
    assert len(wire.rows("kafka_offset_commits", "partition")) == 1


def test_remembered_unknown_versions_are_bounded() -> None:
    wire = Wire(Limits(max_expert_infos=3))
    for correlation in range(20):
        wire.request(500 + correlation, 0, correlation, b"")
    assert len(wire.out.rows("expert_infos") or ()) == 3


def test_a_decoder_travels_between_processes() -> None:
    wire = Wire().request(8, 2, 2, COMMIT_V2)
    wire.decoder = pickle.loads(pickle.dumps(wire.decoder))
    wire.response(2, COMMIT_OK)
    assert wire.exchanges() == [("OffsetCommit", "2", "ok", 0, "NONE")]


FETCH_V7_FULL = bytes.fromhex(
    "ffffffff 000001f4 00000001 03200000 00"  # replica -1, max wait 500 ms, min 1, max bytes, isolation
    "00000000 00000000"  # no session yet
    "00000001 0001 74 00000002"  # topic t
    "00000000 0000000000000064 ffffffffffffffff 00100000"  # partition 0 from 100
    "00000001 00000000000000c8 ffffffffffffffff 00100000"  # partition 1 from 200
    "00000000"
)
FETCH_V7_SESSION = bytes.fromhex(
    "ffffffff 000001f4 00000001 03200000 000000002a 000000010000000000000000"  # session 42, nothing new
)


def _fetched(*partitions: tuple[int, int]) -> bytes:
    """A Fetch v7 response in session 42: (partition, high watermark), no records."""
    body = bytes.fromhex("00000000 0000 0000002a") + struct.pack(">i", 1 if partitions else 0)
    if partitions:
        body += b"\0\x01t" + struct.pack(">i", len(partitions))
    for index, watermark in partitions:
        body += struct.pack(">ihqqqii", index, 0, watermark, watermark, 0, -1, 0)
    return body


def test_a_fetch_session_remembers_what_is_not_named_again() -> None:
    wire = Wire().request(1, 7, 1, FETCH_V7_FULL).response(1, _fetched((0, 100), (1, 200)))
    wire.request(1, 7, 2, FETCH_V7_SESSION).response(2, _fetched((1, 205)))
    wire.request(1, 7, 3, FETCH_V7_SESSION).response(3, _fetched())
    assert wire.rows("kafka_fetch_partitions", "partition", "fetch_offset", "high_watermark") == [
        (0, 100, 100),
        (1, 200, 200),
        (1, 200, 205),
    ]
    assert wire.remarks() == []


# Format 1: offset 9, size, crc, magic 1, attributes, timestamp, no key, value of 4 bytes
PLAIN_V1 = bytes.fromhex("0000000000000009 0000001a 00000000 01 00 0000000000000000 ffffffff 00000004 61626364")
GZIP_V1 = PLAIN_V1[:17] + b"\x01" + PLAIN_V1[18:]


@pytest.mark.parametrize(
    ("records", "count"),
    [
        pytest.param(b"", 0, id="none"),
        pytest.param(PLAIN_V1 * 2, 2, id="single messages"),
        pytest.param(GZIP_V1, None, id="a compressed message does not say how many it holds"),
        pytest.param(PLAIN_V1 + GZIP_V1, None, id="both"),
    ],
)
def test_an_unknown_number_of_fetched_records_is_null(records: bytes, count: int | None) -> None:
    head = _fetched((0, 100))[:-4]
    wire = Wire().request(1, 7, 1, FETCH_V7_FULL).response(1, head + struct.pack(">i", len(records)) + records)
    rows = wire.rows("kafka_fetch_partitions", "partition", "records_bytes", "records_count")
    assert rows[0] == (0, len(records), count)
