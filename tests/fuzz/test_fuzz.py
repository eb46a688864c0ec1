"""The fuzzers reach what they are there for: seeds are read whole, options change what is seen, made-up inputs get
behind the first checks, and the oracle sees what it should."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random
from subprocess import CompletedProcess

import pytest

from tests.app.program import run
from tests.fuzz.__main__ import plan
from tests.fuzz.commands import COMMANDS
from tests.fuzz.engine import Run, make_inputs
from tests.fuzz.levels import KAFKA, LEVELS, MQTT, SPOKEN, Level, decoder_seeds
from tests.fuzz.oracle import FAULT, FINE, LARGE, SLOW, confirmed, judged
from tests.fuzz.pieces import (
    CARRIED,
    FORCED,
    FRAMED,
    FROM_CLIENT,
    LOST,
    MID_STREAM,
    SAMPLES,
    TWICE,
    Piece,
    Spoken,
    conversation_seeds,
    cut,
    joined,
    message_seeds,
    packets,
)
from tests.fuzz.segments import packets as packets_of_segments
from tests.fuzz.segments import plain
from tests.support.kafka_encode import MESSAGES
from tests.support.packets import Captured, pcap
from tests.support.wire import decode
from wirewitness.dissectors.kafka.schema.walk import walk

HEARTBEAT = bytes.fromhex("000c 0000 00000001 0001 63 0001 67 00000007 0001 6d")  # client "c", group "g", member "m"
ANSWER = bytes.fromhex("00000001 0000")

each_protocol = pytest.mark.parametrize("spoken", SPOKEN, ids=lambda spoken: spoken.protocol)


def rows(talk: list[Captured] | bytes, table: str, column: str) -> list[object]:
    """A column of what comes out of packets."""
    decoded = decode(talk, [table])
    try:
        batches = list(decoded.store.tables[table].batches())
    finally:
        decoded.store.close()
    return [value for batch in batches for value in batch[column].to_pylist()]


def statuses(data: bytes, spoken: Spoken = KAFKA) -> list[object]:
    """Status of every exchange that comes out of fuzz bytes."""
    return rows(packets(spoken, data), "exchanges", "status")


@each_protocol
def test_seeds_of_decoders_are_exchanges(spoken: Spoken) -> None:
    found = [statuses(seed, spoken) for seed in islice(conversation_seeds(spoken), 0, None, 9)]
    assert sum("ok" in one for one in found) > len(found) // 2


@each_protocol
def test_seeds_of_messages_are_frames(spoken: Spoken) -> None:
    seeds = [seed[2:] for seed in islice(message_seeds(spoken), 0, None, 9)]
    assert len(seeds) > 5
    for seed in seeds:
        body = spoken.bare(seed)
        assert body is not None
        assert spoken.framed(body) == seed


@each_protocol
def test_made_up_decoders_are_messages_and_some_are_broken(spoken: Spoken) -> None:
    talks = [packets(spoken, joined(FORCED, spoken.talk(Random(seed)))) for seed in range(30)]
    whole = [complete for talk in talks for complete in rows(talk, "messages", "complete")]
    assert sum(map(bool, whole)) > 30
    severities = {severity for talk in talks for severity in rows(talk, "expert_infos", "severity")}
    assert "error" in severities or "warning" in severities


@each_protocol
def test_made_up_messages_are_trees(spoken: Spoken) -> None:
    for seed in range(30):
        place, made = spoken.message(Random(seed))
        assert 0 <= place < len(spoken.asked)
        LEVELS[f"{spoken.protocol}-messages"].check(place.to_bytes(2, "big") + made)


def test_seeds_of_decoders_are_valid_messages() -> None:
    for seed in islice(decoder_seeds(), 0, None, 7):
        message = MESSAGES[int.from_bytes(seed[:2], "big")]
        assert walk(*message, seed, 2, len(seed)).error is None


ASKED = Piece(FROM_CLIENT | FRAMED, HEARTBEAT)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param([ASKED, Piece(FRAMED, ANSWER)], ["ok"], id="answered"),
        pytest.param([ASKED, Piece(FRAMED | LOST, ANSWER)], ["unanswered"], id="lost"),
        pytest.param([ASKED._replace(what=ASKED.what | TWICE), Piece(FRAMED | TWICE, ANSWER)], ["ok"], id="sent twice"),
        pytest.param([Piece(FROM_CLIENT, KAFKA.framed(HEARTBEAT)), Piece(FRAMED, ANSWER)], ["ok"], id="own length"),
        pytest.param([], [], id="nothing"),
    ],
)
@pytest.mark.parametrize("flags", [FORCED, FORCED | MID_STREAM])
def test_pieces(flags: int, pieces: list[Piece], expected: list[str]) -> None:
    data = joined(flags, pieces)
    assert cut(data) == pieces
    assert statuses(data) == expected


def test_pieces_inside_websocket() -> None:
    framed = [ASKED, Piece(FRAMED, ANSWER)]
    assert statuses(joined(FORCED | CARRIED, framed)) == ["ok"]
    assert statuses(joined(CARRIED, [*framed, Piece(0, b"no frame"), *framed])) == ["ok", "ok"]


def test_segments_of_a_whole_connection_are_its_messages() -> None:
    found = [rows(packets_of_segments(plain(choice, 200, Random(1))), "messages", "complete") for choice in range(5)]
    assert sum(map(len, found)) > 20
    assert all(map(any, found))


def test_made_up_websockets_carry_messages() -> None:
    seeds = list(islice(LEVELS["websocket"].seeds(), 40))
    inner = MQTT._replace(framed=lambda body: body)
    transports = [one for seed in seeds for one in rows(packets(inner, seed), "mqtt_connections", "transport")]
    assert transports.count("websocket") > len(seeds) // 4


def test_made_up_captures_hold_segments() -> None:
    read = [
        rows(data, "messages", "complete")
        for data in islice(LEVELS["whole-way"].seeds(), 30)
        if data[:2] != b"\x1f\x8b"
    ]
    assert any(read)


@pytest.mark.parametrize("name", LEVELS)
def test_any_bytes_pass(name: str) -> None:
    for data in (b"", b"\x00", b"\x01\x00", b"\xff" * 40, bytes(300), next(LEVELS[name].seeds())):
        LEVELS[name].check(data)


@pytest.mark.parametrize("name", LEVELS)
def test_the_same_dice_make_the_same_input(name: str) -> None:
    level, data = LEVELS[name], next(LEVELS[name].seeds())
    assert level.change(data, Random(5)) == level.change(data, Random(5))
    assert len({level.change(data, Random(seed)) for seed in range(20)}) > 10


@pytest.mark.parametrize("name", [name for name, level in LEVELS.items() if level.grown is not None])
def test_inputs_are_made_large(name: str) -> None:
    level = LEVELS[name]
    assert level.grown is not None
    data = next(level.seeds())
    sizes = [level.size(level.grown(data, Random(seed), 50_000)) for seed in range(10)]
    assert max(sizes) > 30_000
    assert max(sizes) < 500_000


def wasteful(_: bytes) -> None:
    ends = time.process_time() + 0.3
    while time.process_time() < ends:
        pass


def large(_: bytes) -> None:
    bytearray(400_000_000)


def wrong(data: bytes) -> None:
    raise IndexError(data[:1])


@pytest.mark.parametrize(
    ("check", "slack", "expected"),
    [
        (len, 1.0, FINE),
        (wrong, 1.0, FAULT),
        (wasteful, 0.05, SLOW),
        (wasteful, 1.0, FINE),
        (large, 1.0, LARGE),
        (large, 2.0, FINE),
    ],
)
def test_the_oracle(check: Callable[[bytes], None], slack: float, expected: str) -> None:
    assert judged(check, b"x", 1, slack).kind == expected
    assert confirmed(check, b"x", 1, slack).kind == expected


def test_findings_are_kept_once_and_the_smallest(tmp_path: Path) -> None:
    level = Level(wrong, lambda: iter([b""]), lambda data, dice: dice.randbytes(dice.randint(1, 5)), len, None)
    run = Run("some", level, tmp_path, tmp_path / "running", slack=1.0, guided=False)
    make_inputs({"some": run}, {"some": [b""]}, time.monotonic() + 0.5, Random(1))
    (found,) = [path for path in (tmp_path / "findings" / "some").iterdir() if path.suffix != ".txt"]
    assert found.name == "IndexError-oracle.judged-test_fuzz.wrong"
    assert len(found.read_bytes()) == 1
    (done,) = (json.loads(path.read_text()) for path in (tmp_path / "done").iterdir())
    assert (done["found"], done["level"]) == (1, "some")
    assert done["inputs"] > 5
    assert not (tmp_path / "running").exists()


@pytest.mark.parametrize("seconds", [60, 3600])
def test_every_level_gets_time(seconds: int) -> None:
    tasks = plan([], seconds, Random(1))
    assert {name for task in tasks if not task.guided for name in task.levels} == set(LEVELS)
    assert sum(task.seconds for task in tasks) == pytest.approx(seconds)


def test_commands_end_well_on_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong usage ends with 2, which is no finding: the commands would be fuzzed in vain."""
    assert {"analyse", "table", "show", "extract", "groups"} <= {words[0] for words in COMMANDS}
    sample = (SAMPLES / "mongo_show_databases.pcapng").read_bytes()
    ended: list[tuple[str, int]] = []

    def watched(*words: str, **more: str) -> CompletedProcess[bytes]:
        done = run(*words, **more)
        ended.append((words[0], done.returncode))
        return done

    monkeypatch.setattr("tests.fuzz.commands.run", watched)
    for place, words in enumerate(COMMANDS):
        if words[0] not in ("table", "analyse") or words[-1] == "text":
            LEVELS["commands"].check(place.to_bytes(2, "big") + sample)
    assert [name for name, status in ended if status and name != "show"] == []  # not every packet ends a message
    assert ("show", 0) in ended
    assert ("extract", 0) in ended


def test_a_command_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise LookupError("no such thing")

    monkeypatch.setattr("wirewitness.app.cli.table.write_rows", fails)
    talk = pcap(packets(KAFKA, joined(FORCED, [ASKED, Piece(FRAMED, ANSWER)])), nanoseconds=True)
    place = next(n for n, words in enumerate(COMMANDS) if words[:2] == ["table", "messages"])
    assert judged(LEVELS["commands"].check, place.to_bytes(2, "big") + talk, 100).kind == FAULT
