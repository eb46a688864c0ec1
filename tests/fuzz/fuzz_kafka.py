"""Feeds the Kafka part with bytes that libFuzzer makes up: `python -m tests.fuzz.fuzz_kafka [SECONDS]`.

In: seconds for all targets together (60 without); `--target NAME` runs one. Targets:

    conversation  any bytes as a TCP conversation on port 9092, plain or inside WebSocket, through capture, streams,
                  dissector and the raw tables; one input in 256 through the finished tables and all detectors too,
                  which take fifty times as long
    decoders      any bytes into the fast decoder and the slow reader of every message, which must agree

Without atheris hypothesis makes the bytes up, without knowing which lines they reach. Out: exit status 0 when nothing
was found; a finding ends the run with a trace and leaves the input in the folder it names, or, with hypothesis, prints
it. Checked: nothing raises, all rows fit their tables, decoder and reader give equal values or both refuse.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.support.packets import Captured, pcap

SAMPLES = Path(__file__).resolve().parents[2] / "sample_pcaps"
SAMPLE_NAMES = ("kafka_healthy.pcapng", "kafka_stale_commit.pcapng", "kafka_admin.pcapng")
MAX_INPUT_BYTES = 4096
ALLOCATION_LIMIT_MIB = 256  # memory as a whole is not limited: atheris itself takes more with every run
HYPOTHESIS_EXAMPLES = 100
SEED_CONNECTIONS, SEED_EXCHANGES = 12, 4
WHOLE_WAY_EVERY = 256

# First byte: options. Then pieces: what happens, two bytes of length, payload.
FORCED, WITH_PAYLOAD, MID_STREAM, CARRIED = 1, 2, 4, 8
FROM_CLIENT, LOST, FRAMED, TWICE = 1, 2, 4, 8
PIECE_HEAD_BYTES = 3


class Target(NamedTuple):
    """check raises for bytes that show a fault; seeds are bytes to start from; modules are watched by atheris."""

    check: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]
    modules: list[str]


def check_conversation(data: bytes) -> None:
    """Decode DATA as a conversation and read every row."""
    from analyser.options import ReadOptions
    from analyser.tables import TABLES
    from tests.support.wire import decode

    flags = data[0] if data else 0
    options = ReadOptions(decode_as={9092: "kafka"} if flags & FORCED else {}, payload=bool(flags & WITH_PAYLOAD))
    talk = packets(data)
    decoded = decode(talk, list(TABLES), options=options)
    try:
        for table in decoded.store.tables.values():
            for batch in table.batches():
                batch.validate(full=True)
    finally:
        decoded.store.close()
    if zlib.crc32(data) % WHOLE_WAY_EVERY == 0:
        _check_whole_way(talk)


def check_decoders(data: bytes) -> None:
    """Two bytes choose the message, the rest is its body."""
    from tests.dissectors.kafka.test_walk import check_equal
    from tests.support.kafka_encode import MESSAGES

    message = MESSAGES[int.from_bytes(data[:2], "big") % len(MESSAGES)]
    check_equal(message, data, min(2, len(data)), len(data))


def packets(data: bytes) -> list[Captured]:
    """The conversation that DATA describes; every DATA describes one."""
    from tests.dissectors.carriers.test_upgrade import END, REQUEST, RESPONSE
    from tests.dissectors.carriers.test_websocket import MASK, frame
    from tests.support.wire import Talk

    talk, sent, at = Talk(), [0, 0], 1
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
            payload = len(payload).to_bytes(4, "big") + payload
        from_client = bool(what & FROM_CLIENT)
        if is_carried and what & FRAMED:
            payload = frame(payload, mask=MASK if from_client else None)
        for _ in range(0 if what & LOST else 2 if what & TWICE else 1):
            talk.send(from_client, sent[from_client], payload, ack=sent[not from_client])
        sent[from_client] += len(payload)
    return talk.packets


def conversation_seeds() -> Iterator[bytes]:
    """The beginnings of the lab's connections, each message a piece."""
    from tests.support.lab_exchanges import lab_connections

    for name in SAMPLE_NAMES:
        for connection in islice(lab_connections(SAMPLES / name), SEED_CONNECTIONS):
            for start in range(0, min(len(connection), 10 * SEED_EXCHANGES), SEED_EXCHANGES):
                pieces = [bytes([FORCED | WITH_PAYLOAD | (CARRIED if start % 3 == 2 else 0)])]
                for exchange in connection[start : start + SEED_EXCHANGES]:
                    pieces += [_piece(FROM_CLIENT, exchange.request), _piece(0, exchange.response)]
                yield b"".join(pieces)[:MAX_INPUT_BYTES]


def decoder_seeds() -> Iterator[bytes]:
    """Valid bodies of every message, as far as they are short enough."""
    from tests.support.kafka_encode import MESSAGES, message

    for number, one in enumerate(MESSAGES):
        bodies = (message(*one, Random(turn))[0] for turn in range(2))
        yield from (number.to_bytes(2, "big") + body for body in bodies if len(body) <= MAX_INPUT_BYTES - 2)


TARGETS = {
    "conversation": Target(check_conversation, conversation_seeds, ["dissectors", "analyser"]),
    "decoders": Target(check_decoders, decoder_seeds, ["dissectors.kafka"]),
}


def _piece(what: int, frame: bytes) -> bytes:
    body = frame[4:]  # FRAMED writes the length anew, so that a changed body is still a frame
    return bytes([what | FRAMED]) + min(len(body), 0xFFFF).to_bytes(2, "big") + body


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


def main(arguments: list[str]) -> int:
    """Run the targets for the given time, each in a process of its own."""
    parser = argparse.ArgumentParser(description="feed the Kafka part with bytes that are made up")
    parser.add_argument("seconds", type=int, nargs="?", default=60)
    parser.add_argument("--target", choices=list(TARGETS))
    parser.add_argument("--no-atheris", action="store_true", help="as if atheris were not installed")
    args = parser.parse_args(arguments)
    if args.target:
        fuzz = _with_hypothesis if args.no_atheris or not _has_atheris() else _with_atheris
        fuzz(TARGETS[args.target], args.seconds)
        return 0
    given = ["--no-atheris"] if args.no_atheris else []
    each = str(max(1, args.seconds // len(TARGETS)))
    for name in TARGETS:
        print(f"target {name}, {each} s", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "tests.fuzz.fuzz_kafka", each, "--target", name, *given]
        if subprocess.run(command, check=False).returncode:
            print(f"target {name} failed", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
