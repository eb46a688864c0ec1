"""Who is at the ends of connections, in tables and findings: from packets that name processes, and from files."""

from __future__ import annotations

import json
import re
import struct
import zlib
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

import wirewitness
from tests.conftest import ROOT
from tests.support import owned
from wirewitness.analyser.base.options import ReadOptions

SAMPLE = ROOT / "sample_pcaps" / "kafka_stale_commit.pcapng"
A, B, C, BROKER = "10.77.0.12", "10.77.0.13", "10.77.0.14", 9092
OWN = ("process", "pid", "container", "pod", "namespace", "host", "workload_source")


def java(source: str, source_port: int, destination: str, destination_port: int) -> bytes:
    """The client of every connection is a java process of its address, seen where it runs."""
    sends = destination_port == BROKER
    client, port = (source, source_port) if sends else (destination, destination_port)
    if client not in (A, B):
        return owned.flags(owned.OUTBOUND if sends else owned.INBOUND)
    pid = 100 + zlib.crc32(client.encode()) % 1000
    assert port != BROKER
    return owned.ptcpdump(
        pid,
        "/usr/bin/java",
        "java --password=secret",
        pod=(f"pod-of-{client[-2:]}", "shop"),
        direction=owned.OUTBOUND if sends else owned.INBOUND,
    )


PIDS = {address: 100 + zlib.crc32(address.encode()) % 1000 for address in (A, B)}


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("owned") / "processes.pcapng"
    path.write_bytes(owned.with_options(SAMPLE.read_bytes(), java))
    return path


def hosts(tmp_path: Path, text: str) -> ReadOptions:
    path = tmp_path / "names"
    path.write_text(text)
    return ReadOptions(hosts=(str(path),))


def by_client(analysis: Any, table: str, *columns: str) -> dict[str, set[tuple[Any, ...]]]:
    found: dict[str, set[tuple[Any, ...]]] = {}
    for row in analysis.arrow(table, ["client_address", *columns]).to_pylist():
        found.setdefault(row.pop("client_address"), set()).add(tuple(row.values()))
    return found


def test_processes_of_a_capture_are_in_its_tables(processes: Path) -> None:
    with wirewitness.read(processes) as analysis:
        flows = by_client(analysis, "flows", *(f"client_{name}" for name in OWN))
        exchanges = by_client(analysis, "exchanges", "client_process", "client_pod", "client_host")
        commits = by_client(analysis, "kafka_offset_commits", "client_process", "client_pod", "client_host")
        assert not any(
            row[1:] for row in by_client(analysis, "flows", "server_process", "server_pod").values() if len(row) > 1
        )
    a, b = ((f"java ({PIDS[one]})", PIDS[one], None, f"pod-of-{one[-2:]}", "shop", None, "comment") for one in (A, B))
    assert flows[A] == {a}
    assert flows[B] == {b}
    assert flows[C] == {(None,) * len(OWN)}
    assert exchanges[A] == commits[A] == {(a[0], a[3], None)}
    assert commits[C] == {(None, None, None)}


def test_several_processes_read_the_same(processes: Path) -> None:
    names = ["flow_id", *(f"{side}_{name}" for side in ("client", "server") for name in OWN)]
    found = []
    for number in (1, 2):
        with wirewitness.read(processes, options=ReadOptions(processes=number), tables=["flows"]) as analysis:
            found.append(analysis.arrow("flows", names))
    assert found[0] == found[1]


def test_findings_name_process_and_pod(processes: Path) -> None:
    with wirewitness.read(SAMPLE) as analysis:
        plain = analysis.findings()
    with wirewitness.read(processes) as analysis:
        named = analysis.findings()
    assert list(named["finding_id"]) == list(plain["finding_id"])
    assert list(named["subject"]) == list(plain["subject"])
    words = {
        one: f"client ledger-{x} at {one} (pod pod-of-{one[-2:]}, java pid {PIDS[one]})"
        for one, x in ((A, "a"), (B, "b"))
    }
    both = [text for text in named["sentence"] if words[A] in text and words[B] in text]
    assert both
    for before, after in zip(plain["sentence"], named["sentence"], strict=True):
        assert _without(after) == before
        for address in (A, B):
            assert (f" at {address}" in before) == (f" at {address} (pod " in after)
    clients = [one for text in named["numbers"] for one in json.loads(text).get("committers", ())]
    assert {(one["process"], one["pod"]) for one in clients if one["address"] == A} == {
        (f"java ({PIDS[A]})", f"pod-of-{A[-2:]}")
    }
    assert all("process" not in one for one in clients if one["address"] == C)


def _without(text: str) -> str:
    for address in (A, B):
        text = text.replace(f" (pod pod-of-{address[-2:]}, java pid {PIDS[address]})", "")
    return text


def test_hosts_and_processes_complete_each_other(processes: Path, tmp_path: Path) -> None:
    with wirewitness.read(processes, options=hosts(tmp_path, f"{A} node-a\n{C} node-c\n")) as analysis:
        flows = by_client(analysis, "flows", "client_process", "client_pod", "client_host", "client_workload_source")
        assert analysis.remarks == []
    assert flows[A] == {(f"java ({PIDS[A]})", f"pod-of-{A[-2:]}", "node-a", "comment")}
    assert flows[C] == {(None, None, "node-c", "hosts")}


def test_servers_are_named_too(tmp_path: Path) -> None:
    with wirewitness.read(SAMPLE, options=hosts(tmp_path, "10.77.0.2 kafka-0\n"), tables=["flows"]) as analysis:
        rows = analysis.arrow("flows", ["server_address", "server_host"]).to_pylist()
    assert {row["server_host"] for row in rows if row["server_address"] == "10.77.0.2"} == {"kafka-0"}
    assert {row["server_host"] for row in rows if row["server_address"] != "10.77.0.2"} <= {None}


def test_address_that_changes_hands_keeps_the_one_a_connection_began_with(tmp_path: Path) -> None:
    change = "2026-11-20T11:23:55Z"
    text = f"address,name,from,until\n{A},old,,{change}\n{A},new,{change},\n"
    with wirewitness.read(SAMPLE, options=hosts(tmp_path, text), tables=["flows", "exchanges"]) as analysis:
        flows = analysis.arrow("flows", ["client_address", "client_host", "ts_first", "ts_last", "flow_id"]).to_pylist()
        exchanges = analysis.arrow("exchanges", ["flow_id", "client_host"]).to_pylist()
        remarks = analysis.remarks
    own = [row for row in flows if row["client_address"] == A]
    assert {row["client_host"] for row in own} == {"old"}
    assert any(str(row["ts_last"]) > change.replace("T", " ") for row in own)
    hosts_of = {row["flow_id"]: row["client_host"] for row in flows}
    assert all(row["client_host"] == hosts_of[row["flow_id"]] for row in exchanges)
    assert remarks == []


REMARKS = {
    "another cluster": (
        "172.16.0.1 x\n172.16.0.2 y\n",
        "has 2 addresses, none of them in the capture: is it of another",
    ),
    "two names": (f"{A} x\n{A} y\n", f"{A} has several owners at once: nobody, or only the node they are on, is named"),
    "another time": (
        f"address,name,until\n{A},x,2020-01-01\n",
        f"{A} has owners at other times than the capture's only",
    ),
    "odd lines": (f"{A} x\nso what\n", "1 entry without an address, a name or a time that can be read, passed over"),
}


@pytest.mark.parametrize(("text", "remark"), REMARKS.values(), ids=REMARKS)
def test_what_names_nobody_is_said_in_one_line(tmp_path: Path, text: str, remark: str) -> None:
    with wirewitness.read(SAMPLE, options=hosts(tmp_path, text), tables=["flows"]) as analysis:
        assert len(analysis.remarks) == 1
        assert remark in analysis.remarks[0]


def test_several_processes_at_one_end_are_not_told_apart(tmp_path: Path) -> None:
    number = iter(range(1, 1 << 30))

    def confused(source: str, source_port: int, destination: str, destination_port: int) -> bytes:
        del source_port, destination
        wrong = source == A and destination_port == BROKER
        return owned.process_thread(1 + next(number) % 2) if wrong else b""

    path = tmp_path / "confused.pcapng"
    path.write_bytes(owned.with_options(SAMPLE.read_bytes(), confused))
    with wirewitness.read(path, tables=["flows"]) as analysis:
        assert by_client(analysis, "flows", "client_pid")[A] == {(None,)}
        (remark,) = analysis.remarks
    assert "packets of several processes at one end" in remark


def test_file_that_names_no_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(wirewitness.CaptureError, match="does not name addresses"):
        wirewitness.read(SAMPLE, options=hosts(tmp_path, "hello"))


def test_clients_that_are_named_with_their_ports(tmp_path: Path) -> None:
    sample = ROOT / "sample_pcaps" / "mqtt_faults.pcapng"
    with wirewitness.read(sample, options=hosts(tmp_path, "10.77.0.11 sensor-host\n10.77.0.2 broker\n")) as analysis:
        found = [row for row in analysis.findings().itertuples() if "client tracker at" in row.sentence.lower()]
    assert found
    for row in found:
        assert re.search(r"lient tracker at 10\.77\.0\.11:\d+ \(host sensor-host\)", row.sentence)
        assert "(host broker)" not in row.sentence
        assert {one["host"] for one in json.loads(row.numbers)["clients"] if one["address"] == "10.77.0.11"} == {
            "sensor-host"
        }


def named_by_itself(tmp_path: Path, **names: str) -> Path:
    """The sample with a name resolution block of pcapng behind it: addresses under what they are called."""
    records = b""
    for name, address in names.items():
        value = IPv4Address(address).packed + name.encode() + b"\0"
        records += struct.pack("<HH", 1, len(value)) + value + bytes(-len(value) % 4)
    length = 12 + len(records) + 4
    block = struct.pack("<II", 4, length) + records + bytes(4) + struct.pack("<I", length)
    path = tmp_path / "named.pcapng"
    path.write_bytes(SAMPLE.read_bytes() + block)
    return path


def test_names_in_the_capture_name_hosts(tmp_path: Path) -> None:
    path = named_by_itself(tmp_path, ledger=A, kafka="10.77.0.2", localhost="127.0.0.1")
    with wirewitness.read(path, tables=["flows"]) as analysis:
        flows = by_client(analysis, "flows", "client_host", "client_workload_source", "server_host")
        assert analysis.remarks == []
    assert flows[A] == {("ledger", "capture", "kafka")}
    assert flows[C] == {(None, None, "kafka")}


def test_a_file_of_names_counts_before_those_in_the_capture(tmp_path: Path) -> None:
    path = named_by_itself(tmp_path, ledger=A, kafka="10.77.0.2")
    with wirewitness.read(path, options=hosts(tmp_path, f"{A} node-a\n"), tables=["flows"]) as analysis:
        assert by_client(analysis, "flows", "client_host", "server_host")[A] == {("node-a", "kafka")}
