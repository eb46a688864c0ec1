"""MongoDB captures that others published: legacy opcodes, two hops, one side only, any port; beside tshark's fields."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

import analyser
from tests.conftest import shared_capture

PORTS = (27017, 27018, 3717, 30000)
TABLES = ("flows", "messages", "mongo_commands")
COLUMNS = ("command", "database", "collection", "query_shape", "status", "ok", "error_code", "documents_returned")
FIND = '{"filter":{"name":"?string"}}'
LEGACY_FIND = '{"filter":{"testKey":"?string"}}'
COMMANDS: dict[str, list[tuple[Any, ...]]] = {
    "mongo_legacy_find.pcap": [
        ("find", "testDB", "testCollection", LEGACY_FIND, "ok", None, 0, 1),
        ("isMaster", "testDB", None, None, "ok", True, 0, None),
    ],
    "mongo_legacy_duplicate_key_sll.pcap": [
        ("insert", "test", "restaurants", None, "error", True, 11000, None),
        ("insert", "test", "restaurants", None, "error", True, 11000, None),
        ("replSetGetStatus", "admin", None, None, "error", False, None, None),
    ],
    "mongo_op_msg_port_3717.pcap": [("find", "sky-test", "query", FIND, "ok", True, 0, 1)],
    "mongo_vlan_requests_only.pcap": [
        ("ismaster", "admin", None, None, "unanswered", None, None, None),
        ("getnonce", "abtest", None, None, "unanswered", None, None, None),
        ("isMaster", "admin", None, None, "unanswered", None, None, None),
        ("isMaster", "admin", None, None, "unanswered", None, None, None),
        ("getnonce", "InactiveUserIdentity", None, None, "unanswered", None, None, None),
    ],
}


def read_tables(name: str) -> dict[str, list[dict[str, Any]]]:
    """The tables of a capture."""
    with analyser.read(shared_capture(name), tables=TABLES) as analysis:
        return {table: analysis.arrow(table).to_pylist() for table in TABLES}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str) -> None:
    tables = read_tables(name)
    assert [tuple(row[column] for column in COLUMNS) for row in tables["mongo_commands"]] == COMMANDS[name]
    with_data = [flow for flow in tables["flows"] if flow["bytes_to_server"] + flow["bytes_to_client"]]
    assert {(flow["protocol"], flow["identified_by"]) for flow in with_data} == {("mongo", "content")}


@pytest.mark.parametrize("name", COMMANDS)
def test_messages_are_those_of_tshark(name: str, tshark: str) -> None:
    words = [word for port in PORTS for word in ("-d", f"tcp.port=={port},mongo")]
    fields = ("frame.number", "mongo.request_id", "mongo.opcode", "mongo.message_length")
    words += [word for field in fields for word in ("-e", field)]
    command = [tshark, "-n", "-r", str(shared_capture(name)), "-Y", "mongo", "-T", "fields", *words]
    theirs = []
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        packet, request_id, opcode, length = line.split("\t")
        theirs.append((int(packet), int(request_id, 16), int(opcode), int(length)))
    numbers = {"OP_QUERY": 2004, "OP_REPLY": 1, "OP_MSG": 2013}
    ours = [
        (row["packet_last"], row["correlation_id"] & 0xFFFFFFFF, numbers[row["version"]], row["length_bytes"])
        for row in read_tables(name)["messages"]
    ]
    assert sorted(ours) == sorted(theirs)
    assert ours
