"""What counts as a finding: an exception, too much processor time, too much memory.

In: a check and an input. Out: a `Verdict`. Time is processor time of the process, all threads; it may take a second for
each 100 kB of capture, and a floor that covers what any input costs. Memory is how far the peak grows beyond what the
process held before; it may grow by 300 MB.
"""

from __future__ import annotations

import gc
import resource
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

SECONDS_PER_BYTE = 1.0 / 100_000
MOST_GROWTH_BYTES = 300_000_000
FAULT, SLOW, LARGE, FINE = "fault", "slow", "large", ""
_REPOSITORY = Path(__file__).resolve().parents[2]
_TOLD_FRAMES = 3


class Verdict(NamedTuple):
    """kind: FAULT, SLOW, LARGE or FINE. place: tells one fault from another. told: for people."""

    kind: str
    place: str
    told: str
    seconds: float
    grown_bytes: int


def judged(check: Callable[[bytes], None], data: bytes, size: int, slack: float = 1.0, floor_s: float = 2.0) -> Verdict:
    """Run CHECK on DATA, which stands for SIZE bytes of capture. slack: so many times the limits are allowed; floor_s:
    processor time that any input may take."""
    _forget_peak()
    before, begun = _peak_bytes(), time.process_time()
    try:
        check(data)
    except BaseException as error:  # Rust panics are no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        text = "".join(traceback.format_exception(error))
        return Verdict(FAULT, place_of(error), text, time.process_time() - begun, 0)
    seconds, grown = time.process_time() - begun, _peak_bytes() - before
    allowed_s = slack * max(floor_s, size * SECONDS_PER_BYTE)
    if seconds > allowed_s:
        return Verdict(SLOW, "slow", f"{seconds:.2f} s of processor time for {size} bytes", seconds, grown)
    if grown > slack * MOST_GROWTH_BYTES:
        return Verdict(LARGE, "large", f"{grown / 1e6:.0f} MB more for {size} bytes", seconds, grown)
    return Verdict(FINE, "", "", seconds, grown)


def confirmed(
    check: Callable[[bytes], None], data: bytes, size: int, slack: float = 1.0, floor_s: float = 2.0
) -> Verdict:
    """The same, the cheaper of two runs: what is imported or made at the first use does not count."""
    first = judged(check, data, size, slack, floor_s)
    if first.kind in (FINE, FAULT):
        return first
    gc.collect()
    return judged(check, data, size, slack, floor_s)


def place_of(error: BaseException) -> str:
    """Kind of the error and the innermost functions of the product that it went through, or what it says of that."""
    told = getattr(error, "place", None)
    if isinstance(told, str):
        return told
    frames = [
        f"{Path(frame.filename).stem}.{frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(_REPOSITORY) and ".venv" not in frame.filename
    ]
    return "-".join([type(error).__name__, *frames[-_TOLD_FRAMES:]])


def _forget_peak() -> None:
    """The peak of memory begins anew (proc(5), clear_refs), or one of before would hide what an input takes."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> int:
    """The most memory that this process had since `_forget_peak`."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
