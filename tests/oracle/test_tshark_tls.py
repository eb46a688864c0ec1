"""TLS of several implementations over loopback: what is decrypted is what was said, and what tshark decrypts."""

from __future__ import annotations

import random
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import wirewitness
from tests.conftest import SAMPLES, require_program
from tests.support.packets import pcap
from tests.support.tls_capture import Streams, by_tshark, captured, decrypted, server
from tests.support.tls_twin import SUITES_12, TLS_12, TLS_13, Sides, certificate, twin
from tests.support.wire import packets_of, resegmented
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.dissectors.core.encryption import DECRYPTED
from wirewitness.reports.report.tshark import TABLES, cross_check, find_tshark

# What tshark 4.0 decrypts of a connection is cut at 16 MiB; these say less.
SAID = [random.Random(1).randbytes(size) for size in (1, 100, 5_000, 70_000, 300_000)]
KINDS = [(TLS_13, None), *((TLS_12, suite) for suite in SUITES_12)]


@pytest.fixture
def tcpdump() -> str:
    program = require_program("tcpdump")
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except (PermissionError, AttributeError):
        pytest.skip("packets of the loopback interface can be captured by root only")
    return program


def say(port: int, keylog: Path) -> None:
    """A client of Python says all that is to be said, and waits for the answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.keylog_filename = str(keylog)
    with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as encrypted:
        for data in SAID:
            encrypted.sendall(data)
            left = len(data)
            while left:
                left -= len(encrypted.recv(left))


def only(found: dict[int, Streams]) -> Streams:
    (streams,) = found.values()
    return streams


@pytest.mark.parametrize(("version", "suite"), KINDS, ids=["1.3", *SUITES_12])
def test_python(tshark: str, tcpdump: str, tmp_path: Path, version: ssl.TLSVersion, suite: str | None) -> None:
    capture, keylog = tmp_path / "tls.pcap", tmp_path / "keys.log"
    with server(version, suite) as port, captured(tcpdump, capture, port):
        say(port, keylog)
    ((streams, known),) = decrypted(capture, keylog).values()
    assert streams == (b"".join(SAID), b"".join(SAID))
    assert known.decryption == DECRYPTED
    assert only(by_tshark(tshark, capture, keylog, port)) == streams


@pytest.mark.parametrize("sample", ["kafka_fenced_commit", "mongo_healthy", "mqtt_faults"])
@pytest.mark.parametrize("version", [TLS_12, TLS_13])
def test_twins(tshark: str, tmp_path: Path, sample: str, version: ssl.TLSVersion) -> None:
    """Many connections at a time, with what samples say."""
    capture, keylog, sides = tmp_path / "tls.pcap", tmp_path / "keys.log", Sides(version)
    packets = packets_of(SAMPLES / f"{sample}.pcapng")
    capture.write_bytes(pcap(twin(packets, sides)[0], nanoseconds=True))
    keylog.write_bytes(sides.keylog)
    found = {port: streams for port, (streams, _) in decrypted(capture, keylog).items() if any(streams)}
    server_port = {"kafka": 9092, "mongo": 27017, "mqtt": 1883}[sample.partition("_")[0]]
    expected = by_tshark(tshark, capture, keylog, server_port)
    assert found == {port: streams for port, streams in expected.items() if any(streams)}
    assert len(found) > 3
    with wirewitness.read(capture, options=ReadOptions(keylogs=(str(keylog),)), tables=TABLES) as analysis:
        compared = cross_check(analysis, find_tshark())
    assert compared.agreeing > 50
    assert compared.disagreeing == 0


@pytest.mark.parametrize("size", [50, 301])
def test_records_over_several_segments(tshark: str, tmp_path: Path, size: int) -> None:
    """A message is shown where its record is whole, also where the last segment holds nothing but the tag."""
    capture, keylog, sides = tmp_path / "tls.pcap", tmp_path / "keys.log", Sides(TLS_13)
    packets = resegmented(twin(packets_of(SAMPLES / "mongo_healthy.pcapng"), sides)[0], size)
    capture.write_bytes(pcap(packets, nanoseconds=True))
    keylog.write_bytes(sides.keylog)
    with wirewitness.read(capture, options=ReadOptions(keylogs=(str(keylog),)), tables=TABLES) as analysis:
        compared = cross_check(analysis, find_tshark())
    assert (compared.agreeing > 50, compared.disagreeing, [*compared.explained]) == (True, 0, [])


@contextmanager
def s_server(openssl: str, *options: str) -> Iterator[int]:
    """OpenSSL's own server, which reads and says nothing; its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    cert, key = certificate()
    words = [openssl, "s_server", "-accept", f"127.0.0.1:{port}", "-cert", cert, "-key", key, "-quiet", *options]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


def s_client(openssl: str, port: int, *options: str, lines: list[str]) -> None:
    """OpenSSL's own client: a line `K` updates the keys, `Q` ends. Each line goes out by itself."""
    words = [openssl, "s_client", "-connect", f"127.0.0.1:{port}", *options]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdin is not None
    assert process.stdout is not None
    said = b""
    while b"Max Early Data" not in said and b"Verify return code" not in said:
        part = process.stdout.readline()
        assert part, said
        said += part
    time.sleep(0.5)
    for line in [*lines, "Q"]:
        process.stdin.write(f"{line}\n".encode())
        process.stdin.flush()
        time.sleep(0.3)
    process.communicate(timeout=60)


def test_openssl_updates_keys_and_sends_early_data(tshark: str, tcpdump: str, tmp_path: Path) -> None:
    openssl = require_program("openssl")
    capture, keylog, session = (tmp_path / name for name in ("tls.pcap", "keys.log", "session.pem"))
    early = tmp_path / "early.bin"
    early.write_bytes(b"said before the answer")
    given = ("-tls1_3", "-keylogfile", str(keylog))
    with s_server(openssl, "-tls1_3", "-early_data") as port, captured(tcpdump, capture, port):
        s_client(openssl, port, *given, "-sess_out", str(session), lines=["one", "K", "two", "K", "K", "three"])
        s_client(openssl, port, *given, "-sess_in", str(session), "-early_data", str(early), lines=["four"])
    found = decrypted(capture, keylog)
    assert [streams.client for streams, _ in found.values()] == [b"one\ntwo\nthree\n", early.read_bytes() + b"four\n"]
    assert [(known.decryption, known.early_data, known.resumed) for _, known in found.values()] == [
        (DECRYPTED, False, False),
        (DECRYPTED, True, True),
    ]
    expected = by_tshark(tshark, capture, keylog, port)
    first, second = found
    assert expected[first].client == found[first][0].client
    # tshark 4.0 follows no early data.
    assert found[second][0].client.endswith(expected[second].client)


NODE = """
const said = Buffer.from(Array.from({length: 100000}, (_, at) => at * 7 & 255));
const [, host, port] = process.argv;
let left = said.length;
const socket = require("tls").connect({host, port, rejectUnauthorized: false}, () => socket.write(said));
socket.on("data", part => { left -= part.length; if (left === 0) socket.end(); });
"""


@pytest.mark.parametrize("version", [TLS_12, TLS_13])
def test_node(tshark: str, tcpdump: str, tmp_path: Path, version: ssl.TLSVersion) -> None:
    node = require_program("node")
    capture, keylog = tmp_path / "tls.pcap", tmp_path / "keys.log"
    with server(version) as port, captured(tcpdump, capture, port):
        words = [node, f"--tls-keylog={keylog}", "-e", NODE, "127.0.0.1", str(port)]
        subprocess.run(words, check=True, timeout=300)
    ((streams, known),) = decrypted(capture, keylog).values()
    said = bytes(at * 7 & 255 for at in range(100_000))
    assert streams == (said, said)
    assert known.decryption == DECRYPTED
    assert only(by_tshark(tshark, capture, keylog, port)) == streams
