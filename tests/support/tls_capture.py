"""Real TLS connections over loopback, captured by tcpdump, and both streams as the product and as tshark decrypt them.

In: a function that speaks to a server. Out: a capture; of a capture and a key log, the data of each connection.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.tls_twin import certificate
from wirewitness.analyser.capture import CaptureStats, EndpointTable, open_captures, read_batches
from wirewitness.analyser.decoding.flow_decoder import FlowDecoder
from wirewitness.analyser.decoding.outer_map import Span
from wirewitness.analyser.decoding.run.keys import Keys
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.flow_table import FlowTable
from wirewitness.dissectors.core.carrier import Carried, Opening
from wirewitness.dissectors.core.encryption import Encryption
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink


class Streams(NamedTuple):
    """What client and server said."""

    client: bytes
    server: bytes


class _Watcher:
    """Keeps what a carrier carries, in place of whoever would decode it."""

    def __init__(self) -> None:
        self.data = [b"", b""]

    def opened(self, opening: Opening) -> None: ...

    def own(self, direction: int, start: int, end: int) -> None: ...

    def frame(self, frame: Frame, spans: Sequence[Span]) -> None: ...

    def lost(self, direction: int, size: int) -> None: ...

    def piece(self, direction: int, piece: Carried, packet: int, order: int) -> None:
        self.data[direction] += piece.data


def decrypted(capture: Path, *keylogs: Path) -> dict[int, tuple[Streams, Encryption]]:
    """By the client's port, of connections that speak TLS."""
    endpoints, keys, stats = EndpointTable(), Keys([str(path) for path in keylogs]), CaptureStats(str(capture))
    watchers: dict[int, _Watcher] = {}
    ended: list[Flow] = []

    def consume(flow: Flow) -> None:
        if flow.decoder is None and any(half.queue for half in flow.halves):
            watcher = watchers[flow.first_packet] = _Watcher()
            flow.decoder = FlowDecoder({}, None, (0, 0), Limits(), DecodeOptions(), watcher, keys.carriers)
        if flow.decoder is not None:
            flow.decoder.consume(flow, Sink([]))

    flows = FlowTable(Limits(), endpoints, consume, ended.append)
    for source in open_captures([capture]):
        for batch in read_batches(source, endpoints, stats):
            keys.take(stats)
            flows.feed(batch)
    flows.finish()
    found = {}
    for flow in ended:
        if flow.encryption is not None:
            pair = endpoints[flow.pair]
            port = pair.low_port if flow.client_is_low else pair.high_port
            found[port] = Streams(*watchers[flow.first_packet].data), flow.encryption
    return found


def by_tshark(tshark: str, capture: Path, keylog: Path, server_port: int) -> dict[int, Streams]:
    """The same by tshark, of all connections of the capture."""
    command = [tshark, "-r", str(capture), "-o", f"tls.keylog_file:{keylog}", "-d", f"tcp.port=={server_port},tls"]
    numbers = [*command, "-T", "fields", "-e", "tcp.stream", "-e", "tcp.srcport", "-e", "tcp.dstport"]
    listed = subprocess.run(numbers, capture_output=True, text=True, check=True).stdout.splitlines()
    ports: dict[int, int] = {}
    for line in listed:
        number, source, target = map(int, line.split("\t"))
        ports.setdefault(number, target if source == server_port else source)
    follow = [word for number in ports for word in ("-z", f"follow,tls,raw,{number}")]
    text = subprocess.run([*command, "-q", *follow], capture_output=True, text=True, check=True).stdout
    found = {}
    for part in text.split("Follow: tls,raw\nFilter: tcp.stream eq ")[1:]:
        number, _, rest = part.partition("\n")
        nodes, *lines = rest.splitlines()
        first_node = int(nodes.rpartition(":")[2])
        sides = {False: b"", True: b""}
        for line in lines[1:]:
            if set(line.strip()) <= set("0123456789abcdef"):
                sides[line.startswith("\t")] += bytes.fromhex(line.strip())
        # tshark calls the first one that says something node 0.
        is_client = first_node == ports[int(number)]
        found[ports[int(number)]] = Streams(sides[not is_client], sides[is_client])
    return found


@contextmanager
def captured(tcpdump: str, path: Path, port: int) -> Iterator[None]:
    """Packets of this port on the loopback interface, from before the block to behind it."""
    command = [tcpdump, "-i", "lo", "-U", "--immediate-mode", "-B", "16384", "-w", str(path), f"tcp port {port}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        while b"listening on" not in (line := process.stderr.readline()):
            assert line, "tcpdump does not capture"
        yield
        time.sleep(0.5)
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


@contextmanager
def server(version: ssl.TLSVersion, suite: str | None = None) -> Iterator[int]:
    """A server that sends everything back; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    if suite is not None:
        context.set_ciphers(f"{suite}:@SECLEVEL=0")
    context.load_cert_chain(*certificate("ecdsa" if "ECDSA" in str(suite) else "rsa"))
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with suppress(OSError), context.wrap_socket(connection, server_side=True) as encrypted:
                        while data := encrypted.recv(1 << 16):
                            encrypted.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
