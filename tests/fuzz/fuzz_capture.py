"""Feeds the capture readers with bytes that libFuzzer makes up: `python -m tests.fuzz.fuzz_capture [SECONDS]`.

In: seconds (60 without). Out: exit status 0 when nothing was found or atheris is not installed (it says so); a finding
ends it with a trace and leaves the input in the folder it names. Checked: nothing raises but CaptureError, every packet
is counted once, all payload lies inside the data, and the size of the blocks changes nothing.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.packets import Captured, pcap

MAX_INPUT_BYTES = 8192
ALLOCATION_LIMIT_MIB = 256  # memory as a whole is not limited: atheris itself takes some 40 KiB more with every run


def check(data: bytes) -> None:
    """Read DATA as a capture in two ways; AssertionError when the two differ or the counts do not add up."""
    from analyser.capture import CaptureError
    from tests.analyser.capture.reading import read_bytes

    try:
        whole = read_bytes(data, block_bytes=MAX_INPUT_BYTES)
    except CaptureError:
        return
    assert read_bytes(data, block_bytes=512) == whole


def seeds() -> dict[str, bytes]:
    """Captures of every format, link layer, tunnel and of fragments, to start from."""
    from tests.analyser.capture.test_damage import CAPTURES
    from tests.analyser.capture.test_fragments import four, six
    from tests.analyser.capture.test_layers import LINKS
    from tests.analyser.capture.test_tshark import BYTES
    from tests.analyser.capture.test_tunnels import TUNNELS

    fragments = pcap([Captured(n, frame) for n, frame in enumerate([*four(), *six()])])
    links = {f"link {name}": pcap([Captured(0, frame)], link_type=kind) for name, (kind, frame, _) in LINKS.items()}
    tunnels = {f"tunnel {name}": pcap([Captured(0, frame)]) for name, (frame, _) in TUNNELS.items()}
    return {**CAPTURES, **BYTES, **links, **tunnels, "fragments": fragments}


def main(arguments: list[str]) -> int:
    """Run for the given time."""
    try:
        import atheris
    except ImportError:
        print("skipped: atheris is not installed (pip install atheris; CPython up to 3.13, Linux)", file=sys.stderr)
        return 0
    seconds = int(arguments[0]) if arguments else 60
    folder = Path(tempfile.mkdtemp(prefix="wirewitness-fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    with atheris.instrument_imports(include=["analyser.capture"]):
        for number, capture in enumerate(seeds().values()):
            (corpus / f"seed-{number}").write_bytes(capture)
    print(f"inputs that fail are left in {folder}", file=sys.stderr)
    limits = [
        f"-max_total_time={seconds}",
        f"-max_len={MAX_INPUT_BYTES}",
        f"-malloc_limit_mb={ALLOCATION_LIMIT_MIB}",
        "-rss_limit_mb=0",
    ]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={folder}/", str(corpus)], check)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
