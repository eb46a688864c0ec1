"""What `wirewitness live` is told, checked. In: text of the command line; out: a job for the capturing program."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.shared.failure import CallerError
from wirewitness.app.shared.reading import check_standard_input

if TYPE_CHECKING:
    from wirewitness.analyser.capture.capturing import CaptureJob

_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_UNITS_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_LEAST_FILE_BYTES = 100_000
_MOST_DURATION_S = 1e9  # some thirty years; ns of much longer ones do not fit in 64 bits


class DurationType(click.ParamType[float]):
    """`90`, `90s`, `10m`, `2h`, `1d` to seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds above 0, or a usage error."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip().lower())
        seconds = 0.0 if found is None else float(found[1]) * _UNITS_S[found[2]]
        if not 0 < seconds <= _MOST_DURATION_S:
            self.fail(f"{value!r} is no duration: write 90s, 10m, 2h or 1d", param, ctx)
        return seconds


class RotationType(click.ParamType[tuple[int, int]]):
    """`100MB,10` to bytes of a file and number of files."""

    name = "rotation"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Both numbers, or a usage error."""
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"(\d{1,12}(?:\.\d+)?)\s*([kmg]?)b?\s*,\s*(\d{1,9})", str(value).strip().lower())
        if found is None or int(found[3]) < 1:
            self.fail(f"{value!r}: write SIZE,COUNT, such as 100MB,10", param, ctx)
        size = int(float(found[1]) * _UNITS_BYTES[found[2]])
        if size < _LEAST_FILE_BYTES:
            self.fail(f"{value!r}: a file needs at least {_LEAST_FILE_BYTES // 1000} kB", param, ctx)
        return size, int(found[3])


class PortsType(click.ParamType[tuple[int, ...]]):
    """`9092,1883` to port numbers."""

    name = "ports"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Ports of 1 to 65535, or a usage error."""
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        if not all(part.isdecimal() and 1 <= int(part) <= 65535 for part in parts):
            self.fail(f"{value!r}: write ports of 1 to 65535 with commas between them, such as 9092,1883", param, ctx)
        return tuple(map(int, parts))


def capture_job(
    interfaces: Sequence[str],
    filter_text: str,
    ports: Sequence[int],
    write: str | None,
    rotate: tuple[int, int] | None,
    owners: bool = False,
) -> CaptureJob:
    """The job for these interfaces. owners: look up who owns connections.

    CallerError without the right to capture, for a bad filter, a missing interface.
    """
    from wirewitness.analyser.capture.capturing import CaptureJob
    from wirewitness.analyser.capture.packet_filter import FilterError, both, compiled, of_ports
    from wirewitness.analyser.capture.ring import FILTERED_AS, NoInterfaceError, interface_facts
    from wirewitness.analyser.live.capturer import may_capture

    text = both(filter_text, of_ports(ports))
    if not may_capture():
        raise CallerError(*_how_to_capture(interfaces, text))
    try:
        kinds = {interface_facts(name)[0] for name in interfaces}
        if text and len(kinds) > 1:
            raise CallerError("a filter is for interfaces of one kind, and these are of several")
        kind = min(kinds)
        program = compiled(text, FILTERED_AS.get(kind, kind)) if text else ()
    except (NoInterfaceError, FilterError) as error:
        raise CallerError(str(error)) from error
    most_bytes, most_files = rotate or (0, 0)
    syns = _syn_program(text) if owners else ()
    return CaptureJob(tuple(interfaces), tuple(program), write, most_bytes, most_files, owners, syns)


def _syn_program(text: str) -> tuple[tuple[int, int, int, int], ...]:
    """What lets through the SYNs among the packets of this filter; empty where it needs the link layer."""
    from wirewitness.analyser.capture.packet_filter import FilterError, both, compiled
    from wirewitness.analyser.capture.ring import COOKED, FILTERED_AS
    from wirewitness.analyser.capture.syn_watch import SYN_FILTER, SYN_PROGRAM

    if not text:
        return tuple(SYN_PROGRAM)
    try:
        return tuple(compiled(both(text, SYN_FILTER), FILTERED_AS[COOKED]))
    except FilterError:
        return ()


def check_options(interfaces: Sequence[str], read: str | None, only_interfaces: dict[str, Any]) -> None:
    """A usage error for options that do not go together."""
    if bool(interfaces) == (read is not None):
        raise click.UsageError(
            "name what to read: interfaces with -i, or a stream of pcap with -r (- is standard input)"
        )
    given = [f"--{name}" for name, value in only_interfaces.items() if value]
    if read is not None and given:
        raise click.UsageError(f"{', '.join(given)}: for interfaces (-i) only; give it to the program that captures")
    if only_interfaces["rotate"] and not only_interfaces["write"]:
        raise click.UsageError("--rotate needs --write FILE")
    if len(set(interfaces)) != len(interfaces):
        raise click.UsageError("an interface is named twice")
    if "any" in interfaces and len(interfaces) > 1:
        raise click.UsageError("-i any is all interfaces, so others need no name")
    if read is not None:
        check_standard_input([read], "-r -")


def _how_to_capture(interfaces: Sequence[str], text: str) -> tuple[str, ...]:
    """The pipe first: it works at once and gives no right to this program."""
    quoted = f" '{text}'" if text else ""
    pipe = f"  sudo tcpdump -i {interfaces[0]} -U -w -{quoted} | wirewitness live -r -"
    if sys.platform != "linux":
        return "interfaces are captured on Linux only; elsewhere let tcpdump do it:", pipe
    grant = f"  sudo setcap cap_net_raw+ep {os.path.realpath(sys.executable)}"
    return (
        f"no right to capture on {', '.join(interfaces)}; let a program that has it do that:",
        pipe,
        "or grant it (CAP_NET_RAW) to this Python, and so to all who may run it:",
        grant,
    )
