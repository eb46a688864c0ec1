"""Secrets that systems put into names, settings, properties and error texts leave the program in no way."""

from __future__ import annotations

import base64
import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import wirewitness
from tests.app.dashboard.opening import kept, links, on_page, opened, shown
from tests.app.program import run
from tests.support.packets import pcap
from tests.support.planted import (
    carried,
    commits,
    decoder,
    kafka_places,
    mongo_places,
    mongo_turns,
    mqtt_turns,
    settings,
    together,
)
from tests.support.secret_corpus import CORPUS
from tests.support.secret_kinds import KINDS
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.app.dashboard.offers import given_offer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = {
    "ssl.keystore.password": "Zk7pLq2-setting", "basic.auth.user.info": "registry:Zk7pLq2-info",
    "auth.header": "Zk7pLq2-header", "sasl.jaas.config": 'Module required password="Zk7pLq2-jaas";',
}  # fmt: skip
PROPERTIES = [("authorization", "Zk7pLq2-property"), ("api-key", "Zk7pLq2-key"), ("plant", "hall-7")]
DUPLICATE = (
    'E11000 duplicate key error collection: shop.users index: email_1 dup key: { email: "ww8content@b.example" }'
)
TOKEN_USER = "Zk7pLq2xA9bC8dE7fG6hJ5"
HEADERS = [("Authorization", "Bearer Zk7pLq2-bearer"), ("Cookie", "session=Zk7pLq2-cookie")]
OWN = [b"Zk7pLq2"]
CONTENT = b"ww8content"  # of a document: no credential, but not shown either
NAMES = [b"shop.users", b"email_1", b"api-key", b"orders"]


def leaks(output: bytes, *, content: bool = False) -> list[bytes]:
    """content: it may hold what applications sent."""
    secrets = [planted.secret.encode() for planted in (*CORPUS, *KINDS)] + OWN + ([] if content else [CONTENT])
    ways = {way for one in secrets for way in (one, one.hex().encode(), one.hex(" ").encode())}
    ways |= {base64.b64encode(one).rstrip(b"=")[:-1] for one in secrets}
    return [way for way in ways if way in output]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [planted.text for planted in (*CORPUS, *KINDS) if not getattr(planted, "by_chance", False)]
    chosen_by_nobody = [kind.text for kind in KINDS if kind.by_chance]
    first = commits("app", "g", "m", "t", "", [1])
    kafka = [turn for text in texts for turn in commits("billing", "g", "m", "orders", text, [5])]
    changes = [
        turn for text in texts[::4] for turn in settings("admin", "orders", [*VALUES.items(), ("x", text)], text)
    ]
    mqtt = mqtt_turns("device-7", TOKEN_USER, "plant/7", texts[0], [*PROPERTIES, *(("note", text) for text in texts)])
    inside = mqtt_turns("device-8", "guest", "plant/8", "busy", PROPERTIES)
    mongo = [
        turn for text in texts[::8]
        for turn in mongo_turns(text, "shop", text[:100], {"a": 1}, text, [DUPLICATE, text])
    ]  # fmt: skip
    everywhere = [
        turn for text in [*texts, *chosen_by_nobody] for turn in kafka_places(text if text in texts else "name", text)
    ]
    wills = [
        turn
        for text in [*texts[1::4], *chosen_by_nobody]
        for turn in mqtt_turns("device-9", text, text if text in texts else "t", text, [("note", text)], text.encode())
    ]
    asked = [turn for text in [*texts, *chosen_by_nobody] for turn in mongo_places(text)]
    turns = [(first + kafka, 9092), (first + changes, 9092), (mqtt, 1883), (mongo, 27017), (first + everywhere, 9092)]
    turns += [(wills, 1883), (asked, 27017)]
    packets = together(
        *(decoder(one, port, (f"10.0.0.{n}", 41000)) for n, (one, port) in enumerate(turns, 11)),
        carried(HEADERS, inside),
    )
    path = tmp_path_factory.mktemp("planted") / "planted.pcap"
    path.write_bytes(pcap(packets, nanoseconds=True))
    assert len(leaks(path.read_bytes())) > len(CORPUS) + len(KINDS), "they are not in it: this test would prove nothing"
    return path


def test_no_table_holds_one(capture: Path, tmp_path: Path) -> None:
    names = [name for name, table in TABLES.items() if not table.on_request]
    with wirewitness.read(capture, tables=names) as analysis:
        assert not analysis.unread
        shown = b""
        for name in names:
            rows = repr(analysis.arrow(name).to_pylist()).encode()
            assert not leaks(rows), name
            analysis.write_parquet(name, tmp_path / f"{name}.parquet")
            assert not leaks((tmp_path / f"{name}.parquet").read_bytes()), name
            shown += rows
    assert all(name in shown for name in NAMES)
    assert pq.read_table(tmp_path / "mongo_commands.parquet").num_rows > 10


@pytest.mark.parametrize("format_", ["text", "json", "html", "markdown"])
def test_no_report_holds_one(capture: Path, format_: str) -> None:
    done = run("analyse", capture, "--format", format_)
    assert done.returncode == 0, done.stderr
    assert not leaks(done.stdout + done.stderr)
    assert b"billing" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["table", "kafka_admin_changes", "--format", "csv", "--raw"],
        ["table", "mqtt_connections", "--format", "jsonl"],
        ["table", "messages", "--format", "table"], ["otel"], ["shapes"], ["groups"], ["clients"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_other_output_holds_one(capture: Path, words: list[str]) -> None:
    command, *rest = words
    at = 1 if command == "table" else 0
    done = run(command, *rest[:at], capture, *rest[at:])
    assert done.returncode == 0, done.stderr
    assert not leaks(done.stdout + done.stderr)


def test_live_tells_none(capture: Path) -> None:
    for form in ("text", "jsonl"):
        done = run("live", "-r", capture, "--format", form)
        assert done.returncode == 0, done.stderr
        assert not leaks(done.stdout + done.stderr)


@cache
def messages(capture: Path) -> list[tuple[str, str, str]]:
    with wirewitness.read(capture, tables=["messages"]) as analysis:
        rows = analysis.arrow("messages", ["message_id", "operation", "flow_id"]).to_pylist()
    return [(row["message_id"], row["operation"], row["flow_id"]) for row in rows]


def test_neither_trees_nor_hex_nor_the_cache_hold_one(capture: Path, tmp_path: Path) -> None:
    chosen: dict[str, list[str]] = {}
    for message, operation, _ in messages(capture):
        chosen.setdefault(operation, []).append(message)
    before = os.umask(0)
    try:
        for operation, ids in chosen.items():
            for message in ids[:3]:
                for form in ("text", "json"):
                    done = run("show", capture, message, "--format", form, XDG_CACHE_HOME=str(tmp_path))
                    assert done.returncode == 0, done.stderr
                    assert not leaks(done.stdout.replace(b"\n", b"")), (operation, message)
    finally:
        os.umask(before)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not leaks(b"".join(path.read_bytes() for path in files))


def test_redacted_packets_hold_none(capture: Path, tmp_path: Path) -> None:
    target = tmp_path / "redacted.pcapng"
    for flow in {flow for _, _, flow in messages(capture)}:
        assert run("extract", capture, "--flow", flow, "-o", target, "--redact").returncode == 0
        assert not leaks(target.read_bytes(), content=True)


def test_no_dataset_holds_one(spark: SparkSession, capture: Path, tmp_path: Path) -> None:
    """Not in its tables, nor in the state that the next run goes on from, the manifest or what the run prints."""
    done = run("archive", capture, "--output", tmp_path / "dataset")
    assert done.returncode == 0, done.stderr
    assert not leaks(done.stdout + done.stderr)
    files = [path for path in (tmp_path / "dataset").rglob("*") if path.is_file()]
    parts = [path for path in files if path.suffix == ".parquet"]
    assert len(parts) > 20
    for path in files:
        assert not leaks(path.read_bytes()), path
    for path in parts:
        assert not leaks(repr(pq.read_table(path, partitioning=None).to_pylist()).encode()), path


def test_no_page_of_the_dashboard_holds_one(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    offer = given_offer([str(capture)], {})
    kept(offer)
    monkeypatch.setattr(sys, "argv", ["script", f"--given={json.dumps({'paths': [str(capture)], 'options': {}})}"])
    app = opened(offer.id)
    pages = sorted({link.page for link in links(app.sidebar)} - {""})
    assert len(pages) > 5
    for page in pages:
        app = on_page(app, page)
        assert not app.exception, page
        assert not leaks(shown(app).encode()), page
