"""MongoDB captures that others published: legacy opcodes, two hops, one side only, any port."""

from __future__ import annotations

from typing import Any

import pytest

import wirewitness
from tests.conftest import shared_capture

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
    with wirewitness.read(shared_capture(name), tables=TABLES) as analysis:
        return {table: analysis.arrow(table).to_pylist() for table in TABLES}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str) -> None:
    tables = read_tables(name)
    assert [tuple(row[column] for column in COLUMNS) for row in tables["mongo_commands"]] == COMMANDS[name]
    with_data = [flow for flow in tables["flows"] if flow["bytes_to_server"] + flow["bytes_to_client"]]
    assert {(flow["protocol"], flow["identified_by"]) for flow in with_data} == {("mongo", "content")}
