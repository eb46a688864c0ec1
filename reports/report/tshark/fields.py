"""All that tshark says of single packets, for people who look into a disagreement.

In: a capture, packet numbers. Out: for each of them lines as Wireshark shows them, in the order of the bytes. pyshark
runs tshark for this: its objects carry the shown text of every field, and what they cost does not count for a few
packets. Values that may be credentials or people's data are left out, as everywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from wirewitness.analyser.base.private_files import TemporaryFolder
from wirewitness.dissectors.core.secrets import masked
from wirewitness.reports.report.tshark.protocols import COMPARED
from wirewitness.reports.report.tshark.tshark import LAYERS, Tshark, TsharkError

PACKETS = 20
_LINES, _CHARACTERS = 200, 200
# Fields that hold keys, values, documents, payloads or credentials.
_HIDDEN = re.compile("|".join(compared.hidden for compared in COMPARED.values()))


def packet_fields(
    tshark: Tshark, path: str, ports: Mapping[int, str], packets: Iterable[int]
) -> dict[int, tuple[str, ...]]:
    """Lines for each of these packets, of a damaged file of those before the damage. Raises TsharkError, also without
    pyshark."""
    try:
        import pyshark
    except ImportError as error:
        raise TsharkError("pyshark is not installed: pip install 'wirewitness[crosscheck]'") from error
    numbers = sorted(set(packets))
    if not numbers:
        return {}
    wanted = " || ".join(f"frame.number == {number}" for number in numbers)
    found: dict[int, tuple[str, ...]] = {}
    capture = None
    with _own_preferences():
        try:
            _need_event_loop()
            capture = pyshark.FileCapture(
                path,
                display_filter=wanted,
                tshark_path=tshark.program,
                custom_parameters=tshark.options(ports),
                keep_packets=False,
            )
            for packet in capture:
                found[int(packet.number)] = _lines(packet)
            capture.close()  # says so when tshark ended with an error
        except Exception as error:  # what pyshark and its event loop raise is of many kinds
            if not found:
                reason = next(iter(str(error).splitlines()), "") or type(error).__name__
                raise TsharkError(f"pyshark cannot read {path}: {reason}") from error
        finally:
            if capture is not None:
                _close(capture)
    return found


def _need_event_loop() -> None:
    """pyshark takes the event loop of this thread, of which `asyncio.run` leaves none behind."""
    import asyncio

    try:
        asyncio.get_event_loop_policy().get_event_loop()
    except RuntimeError:
        asyncio.set_event_loop(asyncio.new_event_loop())


def _close(capture: Any) -> None:
    """It closes itself when it is let go, and would print that its tshark ended with an error, which is known."""
    with suppress(Exception):
        capture.close()
    capture._running_processes.clear()


def _lines(packet: Any) -> tuple[str, ...]:
    """The layers of a packet, and the fields of those that are compared."""
    lines = [f"layers {', '.join(layer.layer_name for layer in packet.layers)}"]
    for layer in packet.layers:
        if layer.layer_name in LAYERS:
            lines.append(layer.layer_name)
            lines += _of_layer(layer.field_names, layer)
    if len(lines) > _LINES:
        lines[_LINES:] = [f"and {len(lines) - _LINES} more"]
    return tuple(lines)


def _of_layer(names: Sequence[str], layer: Any) -> Iterator[str]:
    fields = [one for name in names for one in layer.get_field(name).all_fields]
    fields.sort(key=lambda field: int(field.pos or 0))  # a stable order: those of one place stand as tshark has them
    for field in fields:
        text = field.showname or field.show
        if text and not field.hide:
            yield f"  {_shown(field.name or '', text)}"


def _shown(name: str, text: str) -> str:
    """What may be seen of a field. One without a name is the head of a subtree, with values of its fields behind it."""
    if _HIDDEN.fullmatch(name):
        return f"{name}: (not shown)"
    return masked(text if name else text.split(" (", 1)[0])[:_CHARACTERS]


@contextmanager
def _own_preferences() -> Iterator[None]:
    """tshark, which inherits this environment, does not read the user's preferences."""
    before = os.environ.get("WIRESHARK_CONFIG_DIR")
    with TemporaryFolder() as folder:
        os.environ["WIRESHARK_CONFIG_DIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["WIRESHARK_CONFIG_DIR"]
            else:
                os.environ["WIRESHARK_CONFIG_DIR"] = before
