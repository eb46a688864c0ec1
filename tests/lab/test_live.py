"""`wirewitness live` at real servers: what it says at the end is what its own file says when it is analysed.

A Kafka broker, Mosquitto and the MongoDB-speaking server on one host, each under load from that host itself (loopback)
and from another one (a veth pair), captured on both interfaces at once.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pandas  # noqa: F401  with it Arrow makes Python values of times in nanoseconds
import pytest

import wirewitness
from tests.app.program import COMMAND, environment
from tests.app.program import run as run_program
from tests.lab import kafka, mongo_servers, mosquitto
from tests.lab.net import Host, in_namespace, network
from tests.lab.places import LAB_DIR
from tests.lab.processes import Process
from tests.lab.shared_runs import require_lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

LOAD = str(LAB_DIR / "clients" / "python" / "load.py")
LOAD_S = 10
LEAST_OPERATIONS = 20
SEND = """
import socket, sys
address, count = sys.argv[1], int(sys.argv[2])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for number in range(count):
        sender.sendto(bytes(1200), (address, 9))
"""


class Live:
    """A running `wirewitness live` on a host."""

    def __init__(self, host: Host, *words: str, env: dict[str, str] | None = None) -> None:
        self._out = tempfile.TemporaryFile()  # noqa: SIM115  a pipe that nobody reads would hold it up
        self._process = subprocess.Popen(
            host.command(*COMMAND, "live", *words),
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=subprocess.PIPE,
            env=environment(**(env or {})),
        )

    def wait_for(self, file: Path) -> None:
        """Until it captures."""
        until = time.monotonic() + 300
        while not file.exists():
            assert self._process.poll() is None, self._process.communicate()
            assert time.monotonic() < until
            time.sleep(0.1)
        time.sleep(0.5)

    def end(self, status: int = 0) -> tuple[str, str]:
        """Ctrl-C; standard output and error."""
        self._process.send_signal(signal.SIGINT)
        _, err = self._process.communicate(timeout=120)
        assert self._process.returncode == status, err.decode()
        self._out.seek(0)
        return self._out.read().decode(), err.decode()

    def kill(self) -> None:
        """Whatever happened."""
        self._process.kill()
        self._process.wait()
        self._out.close()


@contextmanager
def live(host: Host, *words: str) -> Iterator[Live]:
    running = Live(host, *words)
    try:
        yield running
    finally:
        running.kill()


def send(client: Host, server: Host, count: int) -> None:
    """So many datagrams of 1200 bytes."""
    subprocess.run(client.command(sys.executable, "-c", SEND, server.address, str(count)), check=True)


def loads(hosts: list[Host], endpoints: dict[str, str], directory: Path, stack: ExitStack) -> list[Process]:
    """Clients of every protocol on every host."""
    started = []
    for host in hosts:
        for protocol, endpoint in endpoints.items():
            command = host.command(sys.executable, LOAD, protocol, endpoint, str(LOAD_S))
            process = Process(f"{host.name}-{protocol}", command, directory)
            stack.callback(process.stop)
            started.append(process)
    return started


@pytest.mark.smoke
def test_live_says_what_its_own_file_says(tmp_path: Path) -> None:
    require_lab()
    first, second = tmp_path / "text.pcapng", tmp_path / "json.pcapng"
    kinds = {"kafka": kafka.Kafka(), "mqtt": mosquitto.Mosquitto(), "mongo": mongo_servers.TestServer()}
    for kind in kinds.values():
        kind.prepare()
    with network(["server"], ["client"]) as hosts, ExitStack() as stack:
        server = hosts["server"]
        endpoints = {}
        for name, kind in kinds.items():
            (tmp_path / name).mkdir()
            endpoints[name] = stack.enter_context(kind.running([server], tmp_path / name)).endpoint
        both = ("-i", "lo", "-i", "eth0")
        with (
            live(server, *both, "--write", str(first)) as text,
            live(server, *both, "--write", str(second), "--format", "jsonl", "--ports", "9092,1883,27017") as lines,
        ):
            text.wait_for(first)
            lines.wait_for(second)
            started = loads([server, hosts["client"]], endpoints, tmp_path, stack)
            for process in started:
                process.finish(120)
                assert process.named_events("done")[0]["operations"] >= LEAST_OPERATIONS, process.name
            report, _ = text.end()
            told, _ = lines.end()
    assert report == run_program("analyse", str(first), "--quiet").stdout.decode()
    compare_lines([json.loads(line) for line in told.splitlines()], second)
    for file in (first, second):
        compare_owners(file, {process.pid for process in started})


def compare_owners(file: Path, clients: set[int]) -> None:
    """Connections have the processes that hold them, at both ends: all run on one kernel, in several namespaces."""
    with wirewitness.read(file, tables=("flows",)) as analysis:
        flows = [row for row in analysis.arrow("flows").to_pylist() if row["protocol"] in ("kafka", "mqtt", "mongo")]
    brokers = {row["server_pid"] for row in flows}  # of which Kafka's is a client of its own
    assert {row["client_pid"] for row in flows} - brokers - {None} == clients
    servers = {(row["protocol"], row["server_process"].split(" (")[0]) for row in flows if row["server_process"]}
    assert {("kafka", "java kafka.Kafka"), ("mqtt", "mosquitto")} <= servers
    assert len({row["server_process"] for row in flows if row["server_process"]}) == 3
    named = [row for row in flows if row["client_pid"] is not None]
    assert len(named) > len(flows) / 2  # the shortest connections may be over before, on a busy machine


def facts(exchange: dict[str, Any]) -> str:
    """What does not depend on how a row is written; times and latencies follow from the packets."""
    columns = ("exchange_id", "flow_id", "operation", "status", "client_address", "request_packet", "response_packet")
    return repr([*(exchange[name] for name in columns), exchange["latency_ms"] is None])


def compare_lines(told: list[dict[str, Any]], file: Path) -> None:
    """Exchanges that were streamed, and findings that stand in the end, are those of the file."""
    with wirewitness.read(file, tables=("exchanges", "findings")) as analysis:
        exchanges = analysis.arrow("exchanges").to_pylist()
        findings = {(row["code"], row["subject"]) for row in analysis.arrow("findings").to_pylist()}
    seen = [row for row in told if row["type"] == "exchange"]
    assert len(seen) == len(exchanges) > 6 * LEAST_OPERATIONS
    assert {row["protocol"] for row in seen} == {"kafka", "mqtt", "mongo"}
    assert sorted(map(facts, seen)) == sorted(map(facts, exchanges))
    standing: set[tuple[str, str]] = set()
    for row in told:
        if row["type"] == "finding":
            key = (row["code"], row["subject"])
            assert row["event"] != "new" or key not in standing
            (standing.discard if row["event"] == "withdrawn" else standing.add)(key)
    assert standing == findings


def test_an_interface_that_goes_and_comes_back(tmp_path: Path) -> None:
    require_lab()
    file = tmp_path / "out.pcapng"
    with network(["server"], ["client"]) as hosts:
        server, client = hosts["server"], hosts["client"]

        with live(server, "-i", "eth0", "--write", str(file)) as running:
            running.wait_for(file)
            send(client, server, 4)
            in_namespace(server.namespace, "ip", "link", "set", "eth0", "down")
            time.sleep(1)
            in_namespace(server.namespace, "ip", "link", "set", "eth0", "up")
            time.sleep(1.5)
            send(client, server, 4)
            _, told = running.end()
    assert "interface eth0 went away; waiting for it to come back" in told
    assert "interface eth0 is back" in told
    with wirewitness.read(file, tables=("captures",)) as analysis:
        assert analysis.arrow("captures").column("packets")[0].as_py() >= 8


def test_a_full_disk_ends_the_file_and_not_the_analysis(tmp_path: Path) -> None:
    require_lab()
    disk = tmp_path / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], check=True)
    try:
        file = disk / "out.pcapng"
        with network(["server"], ["client"]) as hosts:
            server = hosts["server"]
            with live(server, "-i", "eth0", "--write", str(file)) as running:
                running.wait_for(file)
                send(hosts["client"], server, 1600)
                time.sleep(1)
                report, told = running.end(status=3)
        assert f"writing {file} stopped: No space left on device" in told
        assert "1,6" in report.split("CAPTURE")[1].splitlines()[1]  # packets
        with wirewitness.read(file, tables=("captures",)) as analysis:
            [capture] = analysis.arrow("captures").to_pylist()
            assert capture["remarks"] is None  # no record is cut
            assert 100 < capture["packets"] < 300
    finally:
        subprocess.run(["umount", str(disk)], check=True)
