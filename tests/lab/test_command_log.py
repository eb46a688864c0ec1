"""Reading what drivers say of their commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab import command_log, driver_log
from tests.lab.command_log import CommandRecord

HEAD = "{ t: 2026-11-20T13:55:11.299Z, c: 'command', s: 'debug', commandName: 'find', requestId: 13, "
HEAD += "driverConnectionId: 4, serverHost: '10.77.0.2', serverPort: 27017, databaseName: 'shop', "
LSID = '"lsid":{"id":{"$binary":{"base64":"/sAvSAyXTsuBBl1NNdUwLw==","subType":"04"}}}'
STARTED = HEAD + 'message: \'Command started\', command: \'{"find":"orders",' + LSID + "}' }"
KNOWN = {"request_id": 13, "command": "find", "database": "shop", "collection": "orders", "acknowledged": True,
         "lsid": "fec02f480c974ecb81065d4d35d5302f", "answered": True, "n": None}  # fmt: skip


@pytest.mark.parametrize(
    ("end", "told"),
    [
        pytest.param(
            "message: 'Command succeeded', durationMS: 1, reply: "
            '\'{"cursor":{"firstBatch":[{"a":1}],"id":77,"ns":"shop.orders"},"ok":1}\' }',
            {"ok": True, "cursor_id": 77, "returned": 1, "error": None},
            id="answered",
        ),
        pytest.param(
            "message: 'Command succeeded', durationMS: 1, reply: "
            '`{"cursor":{"firstBatch":[{"a":"it\'s \\\\"so\\\\""}],"id":0},"ok":1}` }',
            {"ok": True, "cursor_id": 0, "returned": 1, "error": None},
            id="quotes in a value",
        ),
        pytest.param(
            "message: 'Command failed', durationMS: 3, failure: \"no such command: 'x'\" }",
            {"ok": False, "cursor_id": None, "returned": None, "error": "failed"},
            id="refused",
        ),
    ],
)
def test_the_node_drivers_log(end: str, told: dict[str, Any]) -> None:
    lines = ["shop> ", STARTED, HEAD.replace("'command'", "'connection'"), HEAD + end]
    assert driver_log.commands("\n".join(lines)) == [{**KNOWN, **told}]


EVENT = {"client": "a", "address": "10.77.0.11", "request_id": 1, "command": "find", "database": "shop",
         "answered": True, "ok": True, "collection": "orders"}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "told"),
    [
        pytest.param({}, {}, id="as it is"),
        pytest.param({"event": "command", "colour": 1}, {}, id="other names"),
        pytest.param({"cursor_id": "7230000000000000001"}, {"cursor_id": 7230000000000000001}, id="64 bits as text"),
        pytest.param({"command": "getParameter"}, {"command": "getParameter", "collection": None}, id="no collection"),
        pytest.param(
            {"acknowledged": False}, {"acknowledged": False, "answered": False, "ok": None}, id="nobody answered"
        ),
    ],
)
def test_a_record(more: dict[str, Any], told: dict[str, Any]) -> None:
    assert command_log.record_of({**EVENT, **more}) == CommandRecord(**{**EVENT, **told})


def test_a_client_is_read_through_its_card_and_stored_without_loss(tmp_path: Path) -> None:
    events = [{**EVENT, "event": "command", "write_errors": [11000]}, {"event": "done"}]
    (tmp_path / "shop.out").write_text("".join(f"{json.dumps(event)}\n" for event in events) + '{"event": "comm')
    (tmp_path / "shop.err").write_text("")
    command_log.write_card(tmp_path, "shop", "10.77.0.12")
    records = command_log.load_all(command_log.cards(tmp_path))
    assert records == [CommandRecord(**{**EVENT, "write_errors": [11000]})]
    for path in (tmp_path / "one.jsonl.gz", tmp_path / "two.jsonl.gz"):
        command_log.save(records, path)
    assert command_log.load_all([tmp_path / "one.jsonl.gz"]) == records
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
