"""Messages of the MongoDB samples, against tshark: where they end, their lengths, opcodes, ids and compressors.

tshark pairs nothing; which reply answers which request is compared through the responseTo that it shows.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import pytest

import analyser
from tests.conftest import SAMPLES

NAMES = sorted(path.name for path in SAMPLES.glob("mongo_*.pcapng"))
PORTS = (27017, 27018)
OPCODES = {"1": "OP_REPLY", "2004": "OP_QUERY", "2013": "OP_MSG"}
COMPRESSED = "2012"
COMPRESSORS = {"1": "snappy", "2": "zlib", "3": "zstd"}
COLUMNS = (
    "frame.number",
    "mongo.request_id",
    "mongo.response_to",
    "mongo.opcode",
    "mongo.message_length",
    "mongo.compression.original_opcode",
    "mongo.compression.compressor",
    "tcp.srcport",
    "tcp.dstport",
)


class Message(NamedTuple):
    """A message: the packet in which it ends, its opcode (inside OP_COMPRESSED), length, ids, and the client's port."""

    packet: int
    opcode: str
    length_bytes: int
    request_id: int
    response_to: int
    compressor: str | None
    client_port: int


def signed(text: str) -> int:
    """Return a 32-bit number that tshark shows as unsigned hexadecimal."""
    return (int(text, 16) ^ 1 << 31) - (1 << 31)


@cache
def tshark_messages(tshark: str, name: str) -> list[Message]:
    """Return the messages that tshark sees; in these samples no packet has compressed and other messages."""
    words = [word for port in PORTS for word in ("-d", f"tcp.port=={port},mongo")]
    words += [word for field in COLUMNS for word in ("-e", field)]
    command = [tshark, "-n", "-r", str(SAMPLES / name), "-Y", "mongo", "-T", "fields", "-E", "aggregator=,", *words]
    found = []
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        packet, ids, answered, opcodes, lengths, originals, compressors, *ports = line.split("\t")
        [client_port] = {int(port) for port in ports} - set(PORTS)
        kinds = originals if COMPRESSED in opcodes else opcodes
        count = len(ids.split(","))
        columns = [part.split(",") for part in (kinds, lengths, ids, answered)]
        packers = compressors.split(",") if compressors else [""] * count
        assert [len(column) for column in (*columns, packers)] == [count] * 5
        for kind, length, number, to, packer in zip(*columns, packers, strict=True):
            found.append(Message(int(packet), OPCODES[kind], int(length), signed(number), signed(to),
                                 COMPRESSORS.get(packer), client_port))  # fmt: skip
    return found


@cache
def tables(name: str) -> dict[str, list[dict[str, Any]]]:
    """Return messages and mongo_commands of a sample."""
    wanted = ("messages", "mongo_commands")
    with analyser.read(SAMPLES / name, tables=wanted) as analysis:
        return {table: analysis.arrow(table).to_pylist() for table in wanted}


@pytest.mark.parametrize("name", NAMES)
def test_the_same_messages_end_in_the_same_packets(name: str, tshark: str) -> None:
    theirs = Counter(one[:4] for one in tshark_messages(tshark, name))
    ours = Counter(
        (row["packet_last"], row["version"], row["length_bytes"], row["correlation_id"])
        for row in tables(name)["messages"]
    )
    assert ours == theirs
    assert len(theirs) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_replies_answer_the_request_that_they_name(name: str, tshark: str) -> None:
    theirs = {(one.packet, one.response_to): one for one in tshark_messages(tshark, name) if one.response_to}
    rows = [row for row in tables(name)["mongo_commands"] if row["response_packet"] is not None]
    assert rows
    for row in rows:
        reply = theirs.pop((row["response_packet"], row["request_id"]))
        assert reply.compressor == row["response_compressor"]
    # FerretDB answers what wants no answer. The others go on by themselves: each answers the reply before it.
    quiet = [row for row in tables(name)["mongo_commands"] if row["unacknowledged"]]
    unwanted = {(row["client_port"], row["request_id"]) for row in quiet}
    unasked = [one for one in theirs.values() if (one.client_port, one.response_to) not in unwanted]
    assert len(unasked) == sum(row["replies"] - 1 for row in rows)


@pytest.mark.parametrize("name", NAMES)
def test_requests_are_compressed_as_tshark_sees_it(name: str, tshark: str) -> None:
    theirs = {(one.packet, one.request_id): one for one in tshark_messages(tshark, name)}
    for row in tables(name)["mongo_commands"]:
        if row["status"] != "orphan":
            assert theirs[row["request_packet"], row["request_id"]].compressor == row["compressor"]
