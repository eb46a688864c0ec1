"""A fault of our own, wherever it comes up, costs what it came up at; the rest is there, a line says what is
missing, and the command ends with 70."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.analyser.decoding.test_faults import mixed, steps, talk
from tests.app.program import run
from tests.support.faulty import FAULTY
from tests.support.mqtt_encode import connack, connect, publish, suback, subscribe
from tests.support.packets import pcap
from tests.support.wire import Talk
from wirewitness.analyser.analysis import decoded_rows
from wirewitness.analyser.analysis.all_rules import RULES, _family
from wirewitness.analyser.base.faults import FAULTS, RAISE, TRACE, described
from wirewitness.analyser.decoding.run import pipeline
from wirewitness.analyser.mqtt.facts import stage
from wirewitness.analyser.tcp import batch_wait_signs, flow_table
from wirewitness.app.shared.failure import Status
from wirewitness.dissectors.registry import PROTOCOLS
from wirewitness.reports.report import contents, json_document
from wirewitness.reports.report.protocols import PROTOCOL_REPORTS

# The other one has a message more, which does not fit.
MQTT_MESSAGES, OTHER_MESSAGES = 6, 13


def broken(*_: Any, **__: Any) -> NoReturn:
    raise LookupError("s3cret")


@pytest.fixture(autouse=True)
def product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROTOCOLS, "faulty", FAULTY)
    monkeypatch.setenv(FAULTS, "")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A connection of MQTT, and one whose rows do not fit where it says so."""
    mqtt = Talk(server=("10.0.0.2", 1883), client=("10.0.0.9", 40009)).handshake()
    said = [(True, connect()), (False, connack()), (True, subscribe(1, ("#", 0))), (False, suback(1, 0))]
    said += [(True, publish("a", b"x")), (False, publish("a", b"x"))]
    sent = [0, 0]
    for from_client, data in said:
        mqtt.send(from_client, sent[from_client], data, ack=sent[not from_client])
        sent[from_client] += len(data)
    path = tmp_path / "two.pcap"
    path.write_bytes(pcap(mixed(talk(steps(b"!rows"), 40000), mqtt.packets), nanoseconds=True))
    return path


def table(name: str, capture: Path) -> list[dict[str, str]]:
    done = run("table", name, capture, "--format", "csv")
    assert done.returncode == Status.OWN_FAULT, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout.decode())))


def bugs(capture: Path) -> list[str]:
    # Naming tables makes that they are read.
    read = "(select count(*) from messages), (select count(*) from tcp_waits)"
    wanted = f"select text from expert_infos, {read} where code = 'dissector_bug'"
    done = run("query", capture, wanted, "--format", "jsonl")
    assert done.returncode == Status.OWN_FAULT, done.stderr
    return [json.loads(line)["text"] for line in done.stdout.splitlines()]


def test_rows_that_do_not_fit(capture: Path) -> None:
    assert any("1 row" in text and "messages" in text for text in bugs(capture))
    found = table("messages", capture)
    assert sum(row["protocol"] == "mqtt" for row in found) == MQTT_MESSAGES
    assert sum(row["protocol"] == "faulty" for row in found) == OTHER_MESSAGES


def failing_at(call: int, right: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which fails at its nth call only."""
    calls = iter(range(1 << 30))
    return lambda *given, **named: broken() if next(calls) == call else right(*given, **named)


@pytest.mark.parametrize("name", ["take", "take_together", "settle"])
def test_a_fault_while_a_connection_is_followed(monkeypatch: pytest.MonkeyPatch, capture: Path, name: str) -> None:
    whole = table("messages", capture)
    monkeypatch.setattr(flow_table, name, failing_at(0, getattr(flow_table, name)))
    found = table("messages", capture)
    of_one = {row["flow_id"] for row in found} & {row["flow_id"] for row in whole}
    assert of_one
    assert [row for row in whole if row["flow_id"] in of_one][-1:] == [
        row for row in found if row["flow_id"] in of_one
    ][-1:]
    monkeypatch.setattr(flow_table, name, broken)
    assert any("LookupError" in text for text in bugs(capture))


def test_a_fault_in_what_finds_waits(monkeypatch: pytest.MonkeyPatch, capture: Path) -> None:
    whole = table("messages", capture)
    monkeypatch.setattr(batch_wait_signs.SignFinder, "feed", broken)
    assert any("waits" in text for text in bugs(capture))
    assert table("messages", capture) == whole


def test_a_fault_in_what_reads_captures(monkeypatch: pytest.MonkeyPatch, capture: Path) -> None:
    right = pipeline.read_batches

    def one_batch(*given: Any) -> Any:
        yield next(iter(right(*given)))
        broken()

    whole = table("messages", capture)
    monkeypatch.setattr(pipeline, "read_batches", one_batch)
    assert any("captures" in text for text in bugs(capture))
    assert table("messages", capture) == whole


def test_a_fault_in_a_stage_of_the_context(monkeypatch: pytest.MonkeyPatch, capture: Path) -> None:
    def fails(con: Any, _: Any) -> None:
        con.execute("ALTER VIEW mqtt_publishes RENAME TO in_publishes")
        broken()

    monkeypatch.setattr(stage, "add_deliveries", fails)
    done = run("table", "mqtt_publishes", capture, "--format", "jsonl")
    assert (done.returncode, b"context of mqtt_publishes" in done.stderr) == (Status.OWN_FAULT, True), done.stderr
    assert [json.loads(line)["expected_deliveries"] for line in done.stdout.splitlines()] == [None, None]
    done = run("analyse", capture)
    assert (done.returncode, b"s3cret" in done.stderr + done.stdout) == (Status.OWN_FAULT, False)


def test_a_fault_in_columns(monkeypatch: pytest.MonkeyPatch, capture: Path) -> None:
    right = decoded_rows.finish_batch
    fails = lambda name, *given: broken() if name == "exchanges" else right(name, *given)  # noqa: E731
    monkeypatch.setattr(decoded_rows, "finish_batch", fails)
    done = run("table", "exchanges", capture, "--format", "csv")
    assert (done.returncode, b"columns of exchanges" in done.stderr) == (Status.OWN_FAULT, True)
    assert len(table("messages", capture)) == MQTT_MESSAGES + OTHER_MESSAGES
    assert run("analyse", capture).returncode == Status.OWN_FAULT


def test_a_fault_in_a_rule(monkeypatch: pytest.MonkeyPatch, capture: Path) -> None:
    rule = replace(RULES["TCP105"], code="TCP999", detect=broken, reads={"flows": ("ts_first",)}, rows={}, signs={})
    monkeypatch.setitem(_family("TCP"), "TCP999", replace(rule, partition_by=("flow_id",), suspects=None))
    done = run("analyse", capture)
    assert done.returncode == Status.OWN_FAULT
    assert b"detector TCP999 broke" in done.stderr


@pytest.mark.parametrize("form", ["text", "json", "html", "markdown"])
def test_a_fault_in_a_part_of_the_report(monkeypatch: pytest.MonkeyPatch, capture: Path, form: str) -> None:
    fails = PROTOCOL_REPORTS["MQTT"]._replace(sections=broken, values=broken)
    for module in (contents, json_document):
        monkeypatch.setattr(module, "PROTOCOL_REPORTS", {**PROTOCOL_REPORTS, "MQTT": fails})
    done = run("analyse", capture, "--format", form)
    assert done.returncode == Status.OWN_FAULT
    assert b"LookupError in the part about MQTT" in b" ".join(done.stdout.split())
    assert b"Publish" in done.stdout or b"PUBLISH" in done.stdout


@pytest.mark.parametrize("what", ["findings", "quality", "operations"])
def test_a_fault_in_what_all_reports_have(monkeypatch: pytest.MonkeyPatch, capture: Path, what: str) -> None:
    monkeypatch.setattr(contents, what, broken)
    done = run("analyse", capture)
    assert (done.returncode, b"LookupError" in done.stdout) == (Status.OWN_FAULT, True)


def test_live_goes_on(monkeypatch: pytest.MonkeyPatch, capture: Path) -> None:
    monkeypatch.setattr(batch_wait_signs.SignFinder, "feed", broken)
    done = run("live", "-r", capture, "--format", "jsonl")
    assert done.returncode == Status.OWN_FAULT
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(line.get("protocol") == "mqtt" for line in lines) >= 3


def test_the_trace_is_shown_to_those_who_ask(monkeypatch: pytest.MonkeyPatch, capture: Path) -> None:
    monkeypatch.setattr(batch_wait_signs.SignFinder, "feed", broken)
    monkeypatch.setenv(FAULTS, TRACE)
    done = run("analyse", capture, "--debug")
    assert (done.returncode, b"Traceback" in done.stderr) == (Status.OWN_FAULT, True)
    monkeypatch.setenv(FAULTS, RAISE)
    assert run("analyse", capture).returncode == Status.OWN_FAULT


# Source lines stand in traces: what is raised is named there, not written.
QUOTED = (b"user:Zk7pLq2-first", "it is no number: 'Zk7pLq2-\\'second\n")


def quoting(*_: object, **__: object) -> None:
    try:
        raise KeyError(QUOTED[0])
    except KeyError as error:
        raise ValueError(QUOTED[1]) from error


def test_a_trace_shows_nothing_that_exceptions_quote(monkeypatch: pytest.MonkeyPatch, capture: Path) -> None:
    monkeypatch.setattr(batch_wait_signs.SignFinder, "feed", quoting)
    monkeypatch.setenv(FAULTS, TRACE)
    done = run("analyse", capture, "--debug")
    assert b"KeyError: '...'" in done.stderr
    assert b"ValueError: it is no number: '...'" in done.stderr
    assert b"Zk7pLq2" not in done.stderr + done.stdout
    assert described(RuntimeError("can't start: no more threads")) == "RuntimeError: can't start: no more threads"
