"""tshark as a source of dissected packets.

In: a capture file and which server ports speak what. Out: one `Packet` after another, each with the trees of the
protocols in it. tshark is called directly and its JSON read as it comes: pyshark's objects cost three times as
much (5.1 thousand packets for a second of processor time with EK, 0.5 thousand with XML, here 16 thousand); single
packets are read with it in `fields.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO

from wirewitness.analyser.base.private_files import TemporaryFolder
from wirewitness.reports.report.tshark.protocols import COMPARED
from wirewitness.reports.report.tshark.trees import MALFORMED, Packet, Pairs

LAYERS = tuple(compared.layer for compared in COMPARED.values())
# A packet with more text than that is passed over; its number stands in the first HEAD_BYTES.
PACKET_BYTES = 1 << 26
HEAD_BYTES = 1 << 16
_READ_BYTES = 1 << 18
# Two elements of the list: no value holds a line break as such.
_BETWEEN = b"\n  },\n  {\n"
_LAST = b"\n  }"
_LAYERS = ("frame", "ip", "ipv6", "tcp", *LAYERS, MALFORMED)
# Whoever runs it has own preferences; the comparison is made with these.
_PREFERENCES = (
    "tcp.desegment_tcp_streams:TRUE",
    "tcp.reassemble_out_of_order:TRUE",
    "tcp.analyze_sequence_numbers:TRUE",
    "tcp.check_checksum:FALSE",
    "tcp.try_heuristic_first:FALSE",
    "ip.defragment:TRUE",
)


class TsharkError(Exception):
    """tshark is missing or does not read a capture; the text is one sentence for the user.

    cut: it has read all packets up to a damage of the file, as we do.
    """

    def __init__(self, sentence: str, *, cut: bool = False) -> None:
        super().__init__(sentence)
        self.cut = cut


@dataclass(frozen=True, slots=True)
class Tshark:
    """The program and its version, such as (4, 0, 17). encrypted: server ports that speak TLS. keylog: its keys."""

    program: str
    version: tuple[int, ...]
    encrypted: frozenset[int] = frozenset()
    keylog: str | None = None

    def packets(self, path: str, ports: Mapping[int, str]) -> Iterator[Packet | int]:
        """The packets of a capture in which a message ends; the number of a packet that is too large to be read.

        ports: server port -> protocol. Raises TsharkError when tshark cannot read the file, or not to its end.
        """
        with TemporaryFolder() as folder, tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                self.command(path, ports),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env={**os.environ, "WIRESHARK_CONFIG_DIR": folder, "LC_ALL": "C.UTF-8"},
            )
            assert process.stdout is not None
            try:
                some = False
                for packet in _packets(process.stdout):
                    some = True
                    yield packet
                if status := process.wait():
                    sentence = _complaint(said) or f"it ended with status {status}"
                    raise TsharkError(f"tshark cannot read {path}: {sentence}", cut=some and status > 0)
            finally:
                process.kill()
                process.stdout.close()
                process.wait()

    def command(self, path: str, ports: Mapping[int, str]) -> list[str]:
        """The command line that prints the packets of a file as JSON."""
        words = [self.program, "-r", path, "-Y", " || ".join(LAYERS), "-T", "json", "-J", " ".join(_LAYERS)]
        return words + self.options(ports)

    def options(self, ports: Mapping[int, str]) -> list[str]:
        """Command-line options that tell tshark how to dissect."""
        words = ["-n"]
        for preference in _PREFERENCES:
            words += ["-o", preference]
        # Plain bytes on some usual ports, such as 27017, are TLS to it otherwise.
        words += ["--disable-heuristic", "tls_tcp" if self.version >= (3,) else "ssl_tcp"]
        for port, protocol in sorted(ports.items()):
            layer = COMPARED[protocol].layer
            if port in self.encrypted:
                words += ["-d", f"tcp.port=={port},tls", "-d", f"tls.port=={port},{layer}"]
            else:
                words += ["-d", f"tcp.port=={port},{layer}"]
        if self.encrypted and self.keylog is not None:
            words += ["-o", f"tls.keylog_file:{self.keylog}"]
        return words


def find_tshark() -> Tshark:
    """The tshark on the search path. TsharkError, with how to install it, when there is none."""
    program = shutil.which("tshark")
    if program is None:
        raise TsharkError(
            "tshark is not installed: apt-get install tshark (Debian, Ubuntu), dnf install wireshark-cli (Fedora) "
            "or brew install wireshark (macOS)"
        )
    try:
        done = subprocess.run([program, "--version"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise TsharkError(f"{program} does not run: {error}") from error
    found = re.search(rb"(\d+(?:\.\d+)+)", done.stdout)
    return Tshark(program, tuple(map(int, found[1].split(b"."))) if found else ())


def _complaint(said: IO[bytes]) -> str:
    """What tshark wrote on standard error, without its remark on who runs it; its first sentence."""
    said.seek(0)
    lines = said.read(1 << 16).decode("utf-8", "replace").splitlines()
    return next((line.removeprefix("tshark: ") for line in lines if line and not line.startswith("Running as")), "")


def _packets(output: IO[bytes]) -> Iterator[Packet | int]:
    for text in _objects(output):
        packet = _packet(text)
        if packet is not None:
            yield packet


def _objects(output: IO[bytes]) -> Iterator[bytes | int]:
    """The elements of the JSON list that tshark prints; the packet's number in place of one that is too large."""
    held, searched, head = bytearray(), 0, b""
    while piece := output.read(_READ_BYTES):
        held += piece
        while (end := held.find(_BETWEEN, searched)) >= 0:
            yield _element(bytes(held[:end])) if not head else _number_in(head)
            del held[: end + len(_BETWEEN)]
            searched, head = 0, b""
        searched = max(len(held) - len(_BETWEEN), 0)
        if len(held) > PACKET_BYTES:
            head = head or bytes(held[:HEAD_BYTES])
            del held[:searched]
            searched = 0
    if held.strip(b" \n[]"):
        yield _element(bytes(held)) if not head else _number_in(head)


def _element(text: bytes) -> bytes:
    """One object, with the braces that the list's first and last ones have and those between others lack."""
    text = text.strip().removeprefix(b"[").removesuffix(b"]").strip()
    return (b"" if text.startswith(b"{") else b"{") + text + (b"" if text.endswith(_LAST) else b"}")


def _number_in(text: bytes) -> int:
    found = re.search(rb'"frame\.number": "(\d+)"', text)
    return int(found[1]) if found else 0


def _packet(text: bytes | int) -> Packet | int | None:
    if isinstance(text, int):
        return text
    try:
        tree = json.loads(text.decode("utf-8", "replace"), object_pairs_hook=list, strict=False)
    except RecursionError:
        return _number_in(text)
    except ValueError:
        return None  # tshark was killed or broke in the middle of a packet
    layers = dict(dict(tree)["_source"])["layers"]
    below = {name: dict(pairs) for name, pairs in layers if name in {"frame", "tcp"}}
    frame, tcp = below["frame"], below.get("tcp")
    if tcp is None or "tcp.stream" not in tcp:
        return None
    source, target = _addresses(layers)
    return Packet(
        int(frame["frame.number"]),
        _ns(frame["frame.time_epoch"]),
        int(tcp["tcp.stream"]),
        (source, int(tcp["tcp.srcport"])),
        (target, int(tcp["tcp.dstport"])),
        [(name, pairs) for name, pairs in layers if name in LAYERS or name == MALFORMED],
    )


def _addresses(layers: Pairs) -> tuple[str, str]:
    """Addresses of the innermost IP header."""
    inner = [(name, dict(pairs)) for name, pairs in layers if name in {"ip", "ipv6"}]
    if not inner:
        return "", ""
    name, header = inner[-1]
    return header.get(f"{name}.src", ""), header.get(f"{name}.dst", "")


def _ns(epoch: str) -> int:
    """Unix ns of seconds with a fraction; newer versions print a time with its date here."""
    if "T" in epoch:
        from datetime import datetime

        whole, _, fraction = epoch.rstrip("Z").partition(".")
        seconds = int(datetime.fromisoformat(f"{whole}+00:00").timestamp())
    else:
        whole, _, fraction = epoch.partition(".")
        seconds = int(whole)
    return seconds * 1_000_000_000 + int(fraction[:9].ljust(9, "0") or 0)
