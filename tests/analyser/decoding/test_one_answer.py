"""The same bytes give the same rows, whatever is wrong with them: fed one by one, together, or in other segments."""

from __future__ import annotations

import struct

from tests.dissectors.carriers.test_upgrade import END, REQUEST, RESPONSE
from tests.dissectors.carriers.test_websocket import MASK, frame
from tests.dissectors.kafka.talk import KAFKA_CASE
from tests.dissectors.properties import Turn, decoded
from tests.support.mutated import decoders, told, tried
from tests.support.shares import RUNS_THE_REST, proves_more
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, MESSAGE_FIELDS, SERVER_TO_CLIENT

TRIES = 3000 if RUNS_THE_REST else 250
ERROR = MESSAGE_FIELDS.index("error")


@proves_more
def test_changed_decoders_give_the_same_rows_however_they_are_fed() -> None:
    found = [(one.number, one.name, one.batched or one.cut) for one in map(tried, range(TRIES))]
    assert [one for one in found if one[2]] == []


def test_changes_reach_every_protocol_and_carrier() -> None:
    """The property above is worth what its decoders are: unchanged, each is recognised for what it is."""
    seen = {told(talked, talked.turns).facts[::2] for talked in decoders()}
    assert {("kafka", None, None), ("mqtt", None, None), ("mongo", None, None), ("mqtt", "websocket", None)} <= {
        (protocol, carrier, None) for protocol, carrier, *_ in seen
    }


def test_an_error_is_told_from_the_bytes_of_its_message_alone() -> None:
    """A count that is too large for the message, not for the buffer that goes on behind it."""
    body = struct.pack(">h1sih1sq", 1, b"g", 7, 1, b"m", -1) + struct.pack(">i", 1) + struct.pack(">h", 400) + b"t"
    content = struct.pack(">hhih", 8, 2, 1, 1) + b"c" + body
    broken = Turn(CLIENT_TO_SERVER, struct.pack(">i", len(content)) + content, packet=1)
    after = [turn._replace(packet=number) for number, turn in enumerate(KAFKA_CASE.long_talk[:40], 2)]
    apart = decoded(KAFKA_CASE, [broken, *after])
    together = decoded(KAFKA_CASE, [broken, *after], together=100)
    assert apart == together
    assert any(row[ERROR] for row in apart["messages"])


def test_bytes_skipped_inside_websocket_name_the_packet_of_the_first() -> None:
    broken = frame(b"x" * 30, mask=MASK)
    said = [
        Turn(CLIENT_TO_SERVER, REQUEST + END, packet=1),
        Turn(SERVER_TO_CLIENT, RESPONSE + END, packet=2),
        Turn(CLIENT_TO_SERVER, b"\x8f" + broken[1:], packet=3),
        Turn(CLIENT_TO_SERVER, b"\xff" * 9, packet=4),
        *(Turn(CLIENT_TO_SERVER, frame(b"hello", mask=MASK) * 3, packet=number) for number in (5, 6)),
    ]
    rows = [row for row in decoded(KAFKA_CASE, said)["expert_infos"] if "WebSocket" in row[7]]
    start = len(REQUEST + END)
    assert [(row[6], row[2], row[8]) for row in rows if row[6] in ("malformed_frame", "skipped_bytes")] == [
        ("malformed_frame", 3, f"{start}-{start + 1}"),
        ("skipped_bytes", 3, f"{start + 2}-{start + len(broken) + 8}"),
    ]
