"""Filters as tcpdump knows them, for the kernel. In: the text of a filter, a link type. Out: lines of a program.

libpcap compiles them: through tcpdump where it is installed, else through Scapy, which asks the library.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence

from wirewitness.analyser.capture.ring import FilterProgram

_SNAPLEN = 262_144
_TIMEOUT_S = 20
# The library's own numbers of link types where they are not those of files (pcap/dlt.h).
_OWN_NUMBERS = {101: 12}


class FilterError(Exception):
    """The filter cannot be used; the text is a sentence."""


def compiled(text: str, link_type: int) -> FilterProgram:
    """The program of a filter. Raises FilterError for one that libpcap does not understand, or without libpcap."""
    if shutil.which("tcpdump"):
        return _by_tcpdump(text, link_type)
    try:
        from scapy.arch.common import compile_filter
        from scapy.error import Scapy_Exception
    except ImportError as error:
        raise FilterError("a filter needs tcpdump, or Scapy and libpcap, to be compiled; none is installed") from error
    try:
        program = compile_filter(text, linktype=_OWN_NUMBERS.get(link_type, link_type))
    except (OSError, ImportError, Scapy_Exception) as error:
        raise FilterError(f"the filter {text!r} cannot be compiled: {error}") from error
    lines = (program.bf_insns[place] for place in range(program.bf_len))
    return tuple((line.code, line.jt, line.jf, line.k) for line in lines)


def of_ports(ports: Sequence[int]) -> str:
    """The filter for connections to or from these ports."""
    return " or ".join(f"tcp port {port}" for port in ports)


def both(one: str, other: str) -> str:
    """The filter for what both let through; an empty one lets everything through."""
    parts = [part for part in (one, other) if part]
    return parts[0] if len(parts) == 1 else " and ".join(f"({part})" for part in parts)


def _by_tcpdump(text: str, link_type: int) -> FilterProgram:
    """tcpdump prints the program of a filter for the link type of the capture that it is given."""
    empty = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, _SNAPLEN, link_type)
    command = ["tcpdump", "-ddd", "-r", "-", "--", text]
    try:
        done = subprocess.run(command, input=empty, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FilterError(f"the filter {text!r} cannot be compiled: {error}") from error
    if done.returncode:
        told = [line.removeprefix("tcpdump: ") for line in done.stderr.decode("utf-8", "replace").splitlines()]
        why = next((line for line in reversed(told) if line and not line.startswith("reading from file")), "no reason")
        raise FilterError(f"the filter {text!r} cannot be used: {why}")
    lines = [tuple(map(int, line.split())) for line in done.stdout.split(b"\n")[1:] if line]
    return tuple((code, jt, jf, k) for code, jt, jf, k in lines)
