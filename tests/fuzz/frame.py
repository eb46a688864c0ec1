"""What the fuzz programs of the protocols share: made-up TCP conversations, targets, atheris or hypothesis.

In: how a protocol's frames look from outside (`Spoken`), targets of a program. Out: `main` of a program, whose exit
status is 0 when nothing was found; a finding ends the run with a trace and leaves the input in the folder it names, or,
with hypothesis, prints it. Targets that every protocol has:

    conversation  any bytes as a TCP conversation on the protocol's port, plain or inside WebSocket, through capture,
                  streams, dissector and the raw tables; one input in 256 through the finished tables and all detectors
                  too, which take fifty times as long
    messages      any bytes as one message that `show` looks into: a tree without holes

Checked: nothing raises, all rows fit their tables. Without atheris hypothesis makes the bytes up, without knowing which
lines they reach.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from analyser.decoding.faults import FAULTS, RAISE
from tests.support.packets import Captured, pcap

os.environ[FAULTS] = RAISE

SAMPLES = Path(__file__).resolve().parents[2] / "sample_pcaps"
MAX_INPUT_BYTES = 4096
ALLOCATION_LIMIT_MIB = 256  # memory as a whole is not limited: atheris itself takes more with every run
HYPOTHESIS_EXAMPLES = 100
SEED_CONNECTIONS, SEED_STRETCHES, SEED_SEGMENTS = 12, 10, 8
WHOLE_WAY_EVERY = 256

# First byte: options. Then pieces: what happens, two bytes of length, payload.
FORCED, WITH_PAYLOAD, MID_STREAM, CARRIED = 1, 2, 4, 8
FROM_CLIENT, LOST, FRAMED, TWICE = 1, 2, 4, 8
PIECE_HEAD_BYTES = 3


class Spoken(NamedTuple):
    """A protocol. framed: a frame around any body, with a right length; bare: the body of one whole frame, or None."""

    protocol: str
    port: int
    samples: Sequence[str]
    framed: Callable[[bytes], bytes]
    bare: Callable[[bytes], bytes | None]


class Target(NamedTuple):
    """check raises for bytes that show a fault; seeds are bytes to start from; modules are watched by atheris."""

    check: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]
    modules: list[str]


def targets(spoken: Spoken) -> dict[str, Target]:
    """The targets that every protocol has."""
    modules = [f"dissectors.{spoken.protocol}", "dissectors.core"]
    return {
        "conversation": Target(
            lambda data: check_conversation(spoken, data),
            lambda: conversation_seeds(spoken),
            ["dissectors", "analyser"],
        ),
        "messages": Target(lambda data: check_message(spoken, data), lambda: message_seeds(spoken), modules),
    }


def check_conversation(spoken: Spoken, data: bytes) -> None:
    """Decode DATA as a conversation and read every row."""
    from analyser.options import ReadOptions
    from analyser.registry.tables import TABLES
    from tests.support.wire import decode

    flags = data[0] if data else 0
    forced = {spoken.port: spoken.protocol} if flags & FORCED else {}
    talk = packets(spoken, data)
    options = ReadOptions(decode_as=forced, payload=bool(flags & WITH_PAYLOAD))
    decoded = decode(talk, list(TABLES), options=options)
    try:
        for table in decoded.store.tables.values():
            for batch in table.batches():
                batch.validate(full=True)
    finally:
        decoded.store.close()
    if zlib.crc32(data) % WHOLE_WAY_EVERY == 0:
        _check_whole_way(talk)


def check_message(spoken: Spoken, data: bytes) -> None:
    """The first byte chooses what is known of the message, the rest is its frame."""
    from tests.dissectors.properties import check_tree
    from tests.dissectors.test_properties import CASES

    case = CASES[spoken.protocol]
    check_tree(case.dissector, data[1:], case.asked[data[0] % len(case.asked) if data else 0])


def packets(spoken: Spoken, data: bytes) -> list[Captured]:
    """The conversation that DATA describes; every DATA describes one."""
    from tests.dissectors.carriers.test_upgrade import END, REQUEST, RESPONSE
    from tests.dissectors.carriers.test_websocket import MASK, frame
    from tests.support.wire import Talk

    talk, sent, at = Talk(server=("10.0.0.2", spoken.port)), [0, 0], 1
    is_carried = bool(data and data[0] & CARRIED)
    if not (data and data[0] & MID_STREAM):
        talk.handshake()
        if is_carried:
            talk.send(True, 0, REQUEST + END).send(False, 0, RESPONSE + END)
            sent = [len(RESPONSE + END), len(REQUEST + END)]
    while at + PIECE_HEAD_BYTES <= len(data):
        what, length = data[at], int.from_bytes(data[at + 1 : at + 3], "big")
        payload = data[at + PIECE_HEAD_BYTES :][:length]
        at += PIECE_HEAD_BYTES + len(payload)
        if what & FRAMED:
            payload = spoken.framed(payload)
        from_client = bool(what & FROM_CLIENT)
        if is_carried and what & FRAMED:
            payload = frame(payload, mask=MASK if from_client else None)
        for _ in range(0 if what & LOST else 2 if what & TWICE else 1):
            talk.send(from_client, sent[from_client], payload, ack=sent[not from_client])
        sent[from_client] += len(payload)
    return talk.packets


def conversation_seeds(spoken: Spoken) -> Iterator[bytes]:
    """The beginnings of the lab's connections, each segment a piece."""
    for segments in _connections(spoken):
        for start in range(0, min(len(segments), SEED_STRETCHES * SEED_SEGMENTS), SEED_SEGMENTS):
            carried = CARRIED if start // SEED_SEGMENTS % 3 == 2 else 0
            pieces = [_piece(spoken, *segment) for segment in segments[start : start + SEED_SEGMENTS]]
            yield (bytes([FORCED | WITH_PAYLOAD | carried]) + b"".join(pieces))[:MAX_INPUT_BYTES]


def message_seeds(spoken: Spoken) -> Iterator[bytes]:
    """The first segments of the lab's connections that are a message each."""
    for segments in _connections(spoken):
        whole = (payload for _, payload in segments if spoken.bare(payload) is not None)
        for number, payload in enumerate(islice(whole, SEED_STRETCHES)):
            yield (bytes([number]) + payload)[:MAX_INPUT_BYTES]


def _connections(spoken: Spoken) -> Iterator[list[tuple[bool, bytes]]]:
    """Whether the client sent it, and the payload of every segment."""
    from tests.support.lab_exchanges import lab_streams

    for name in spoken.samples:
        for to_server, to_client in islice(lab_streams(SAMPLES / f"{name}.pcapng", spoken.port), SEED_CONNECTIONS):
            sent = [(one.ts_ns, side, one.payload) for side, held in ((1, to_server), (0, to_client)) for one in held]
            yield [(bool(side), payload) for _, side, payload in sorted(sent) if payload]


def _piece(spoken: Spoken, from_client: bool, payload: bytes) -> bytes:
    body = spoken.bare(payload)
    what = FROM_CLIENT if from_client else 0
    if body is not None:  # FRAMED writes the length anew, so that a changed body is still a frame
        what, payload = what | FRAMED, body
    return bytes([what]) + min(len(payload), 0xFFFF).to_bytes(2, "big") + payload[:0xFFFF]


def _check_whole_way(talk: list[Captured]) -> None:
    import analyser

    with tempfile.TemporaryDirectory(prefix="wirewitness-fuzz-") as folder:
        capture = Path(folder) / "talk.pcap"
        capture.write_bytes(pcap(talk, nanoseconds=True))
        with analyser.read(capture) as analysis:
            for name in analysis.tables():
                for batch in analysis.batches(name):
                    batch.validate(full=True)


def _with_atheris(target: Target, seconds: int) -> None:
    """Does not come back: libFuzzer ends the process, with 0 when nothing was found."""
    import atheris

    folder = Path(tempfile.mkdtemp(prefix="wirewitness-fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    with atheris.instrument_imports(include=target.modules):
        for number, seed in enumerate(target.seeds()):
            (corpus / f"seed-{number}").write_bytes(seed)
            if number == 0:
                target.check(seed)
    print(f"inputs that fail are left in {folder}", file=sys.stderr)
    limits = [f"-max_total_time={seconds}", f"-max_len={MAX_INPUT_BYTES}", "-rss_limit_mb=0"]
    limits += [f"-malloc_limit_mb={ALLOCATION_LIMIT_MIB}", f"-artifact_prefix={folder}/", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, str(corpus)], target.check)
    atheris.Fuzz()


def _with_hypothesis(target: Target, seconds: int) -> None:
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    corpus = list(target.seeds())
    cut = st.tuples(st.sampled_from(corpus), st.integers(0, MAX_INPUT_BYTES), st.binary(max_size=8))
    broken = cut.map(lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + len(parts[2]) :])
    ends, runs = time.monotonic() + seconds, 0

    @settings(max_examples=HYPOTHESIS_EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=MAX_INPUT_BYTES) | broken)
    def any_bytes(data: bytes) -> None:
        nonlocal runs
        runs += 1
        target.check(data)

    while time.monotonic() < ends:
        any_bytes()
    print(f"{runs} inputs", file=sys.stderr)


def _has_atheris() -> bool:
    from importlib.util import find_spec

    if find_spec("atheris") is not None:
        return True
    print("atheris is not installed (CPython up to 3.13, Linux): hypothesis makes up the bytes", file=sys.stderr)
    return False


def main(program: str, programs_targets: Mapping[str, Target], arguments: list[str]) -> int:
    """Run the targets for the given time, each in a process of its own. program: the module that is run."""
    parser = argparse.ArgumentParser(prog=program, description="feed a protocol with bytes that are made up")
    parser.add_argument("seconds", type=int, nargs="?", default=60)
    parser.add_argument("--target", choices=list(programs_targets))
    parser.add_argument("--no-atheris", action="store_true", help="as if atheris were not installed")
    args = parser.parse_args(arguments)
    if args.target:
        fuzz = _with_hypothesis if args.no_atheris or not _has_atheris() else _with_atheris
        fuzz(programs_targets[args.target], args.seconds)
        return 0
    given = ["--no-atheris"] if args.no_atheris else []
    each = str(max(1, args.seconds // len(programs_targets)))
    for name in programs_targets:
        print(f"{program}: target {name}, {each} s", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", program, each, "--target", name, *given]
        if subprocess.run(command, check=False).returncode:
            print(f"{program}: target {name} failed", file=sys.stderr)
            return 1
    return 0
