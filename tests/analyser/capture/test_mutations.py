"""Real captures with pieces overwritten, taken out, put in or doubled: what lies before the damage stays as it is."""

import gzip
import struct
import subprocess
from pathlib import Path

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.analyser.capture.reading import read_bytes
from tests.conftest import require_program
from tests.support.shares import examples
from wirewitness.analyser.capture import CaptureError

SAMPLES = sorted((Path(__file__).resolve().parents[3] / "sample_pcaps").glob("*.pcapng"))
HEAD_BYTES = 40_000
PROTECTED_BYTES = {"pcap": 24, "pcapng": 12}  # without these it is no capture


def as_pcap(capture: bytes) -> bytes:
    """The packets of a pcapng of our lab (little-endian, one interface) as a pcap with times of its own."""
    parts: list[bytes] = []
    position, link_type = 0, 1
    while position + 12 <= len(capture):
        kind, length = struct.unpack_from("<II", capture, position)
        if position + length > len(capture):
            break
        if kind == 1:
            (link_type,) = struct.unpack_from("<H", capture, position + 8)
        elif kind == 6:
            captured, wire = struct.unpack_from("<II", capture, position + 20)
            data = capture[position + 28 : position + 28 + captured]
            parts.append(struct.pack("<IIII", 1_700_000_000, position, captured, wire) + data)
        position += length
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, link_type) + b"".join(parts)


HEADS = {"pcapng": SAMPLES[0].read_bytes()[:HEAD_BYTES]}
HEADS["pcap"] = as_pcap(HEADS["pcapng"])

mutations = st.tuples(
    st.sampled_from(["overwrite", "take out", "put in", "double"]),
    st.floats(0, 1),
    st.integers(1, 400),
    st.binary(min_size=1, max_size=40),
)


def mutate(form: str, capture: bytes, changes: list[tuple[str, float, int, bytes]]) -> tuple[bytes, int]:
    """The capture with the changes made one after the other, and how many bytes at its start are as they were."""
    first = len(capture)
    for kind, where, size, noise in changes:
        at = PROTECTED_BYTES[form] + int(where * (len(capture) - PROTECTED_BYTES[form]))
        first = min(first, at)
        piece = capture[at : at + size]
        if kind == "overwrite":
            capture = capture[:at] + noise + capture[at + len(noise) :]
        elif kind == "take out":
            capture = capture[:at] + capture[at + size :]
        else:
            capture = capture[:at] + (noise if kind == "put in" else piece) + capture[at:]
    return capture, first


def test_the_heads_hold_segments() -> None:
    for form, capture in HEADS.items():
        segments, stats = read_bytes(capture)
        assert len(segments) > 50, form
        assert {remark.code for remark in stats.remarks} <= {"cut_record"}


@given(st.sampled_from(sorted(HEADS)), st.lists(mutations, min_size=1, max_size=6), st.integers(64, 20_000))
@examples(120, suppress_health_check=[HealthCheck.too_slow])
def test_mutated_captures(form: str, changes: list[tuple[str, float, int, bytes]], block_bytes: int) -> None:
    damaged, intact = mutate(form, HEADS[form], changes)
    found = read_bytes(damaged)
    before = read_bytes(HEADS[form][:intact])[0] if intact > 60 else []
    assert found[0][: len(before)] == before
    assert read_bytes(damaged, block_bytes=block_bytes) == found


@given(st.lists(mutations, min_size=1, max_size=3))
@examples(60)
def test_mutated_compressed_captures(changes: list[tuple[str, float, int, bytes]]) -> None:
    damaged, _ = mutate("pcap", gzip.compress(HEADS["pcap"], mtime=0), changes)
    whole = read_bytes(HEADS["pcap"])[0]
    try:
        segments, stats = read_bytes(damaged)
    except CaptureError:
        return
    assert stats.remarks or segments[: len(whole)] == whole


def test_the_pcap_made_here_is_one(tmp_path: Path) -> None:
    capinfos = require_program("capinfos")
    path = tmp_path / "head.pcap"
    path.write_bytes(HEADS["pcap"])
    done = subprocess.run([capinfos, "-c", "-M", str(path)], capture_output=True, text=True, check=True)
    assert str(read_bytes(HEADS["pcap"])[1].packets) in done.stdout
