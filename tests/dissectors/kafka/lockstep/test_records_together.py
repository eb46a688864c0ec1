"""Batches of records that are read together with those of others give the rows and remarks of those read one by one."""

from __future__ import annotations

import struct
from functools import cache, partial
from random import Random

import crc32c
import pytest

from tests.dissectors.kafka.lockstep import test_batch_decode
from tests.dissectors.kafka.lockstep.test_batch_decode import TABLES, Said, frames_of, talk
from tests.support.left_frames import feed_in_batches, resting
from tests.support.record_batches import CODEC_NUMBERS, Sent, batch, message_set
from tests.support.shares import RUNS_THE_REST
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame, Row
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.kafka.decoder import KafkaDecoder
from wirewitness.dissectors.kafka.lockstep import fetches, produces, records
from wirewitness.dissectors.kafka.lockstep.blob import Blob
from wirewitness.dissectors.kafka.lockstep.record_rows import record_rows
from wirewitness.dissectors.kafka.lockstep.records import OpenedOnce
from wirewitness.dissectors.kafka.records.compression import decompress

pytestmark = pytest.mark.usefixtures("_few_are_enough")
_few_are_enough = test_batch_decode._few_are_enough
TRIES = 200 if RUNS_THE_REST else 10
# Fields of a header: first byte, and how it is packed.
COUNT, DELTA, ATTRIBUTES, BASE_OFFSET, BASE_TIME, SIZE = (57, "i"), (23, "i"), (21, "h"), (0, "q"), (27, "q"), (8, "i")
LIMITS = [
    Limits(),
    Limits(max_records_per_batch=2),
    Limits(max_held_records_bytes=3000),
    Limits(max_decompressed_bytes=150),
    Limits(usual_compression_ratio=1, decompression_slack_bytes=2000),
    Limits(usual_records_per_compressed_byte=0, compressed_records_of_all=0),
]


def with_field(raw: bytes, field: tuple[int, str], number: int) -> bytes:
    """A batch with another number in its header, and the right checksum."""
    changed = bytearray(raw)
    struct.pack_into(">" + field[1], changed, field[0], number)
    return checked(bytes(changed))


def with_body(raw: bytes, body: bytes) -> bytes:
    """A batch with other data behind its header, and the right size and checksum."""
    return with_field(raw[:61] + body, SIZE, 61 - 12 + len(body))


def checked(raw: bytes) -> bytes:
    return raw[:17] + struct.pack(">I", crc32c.crc32c(raw[21:])) + raw[21:]


@cache
def plain_batches() -> list[bytes]:
    """Whole batches of each codec, those of control records and of a broker's own time among them."""
    sent = [Sent(1_700_000_000_000 + n, b"k" * n or None, b"v" * 90 * n, [("h", b"1")] * n) for n in range(4)]
    found = [batch(sent, codec) for codec in CODEC_NUMBERS]
    found.append(batch(sent, "gzip", transactional=True, producer=(7, 1, 2**31 - 2)))
    found.append(with_field(batch(sent), ATTRIBUTES, 8))
    marker = [Sent(1_700_000_000_000, struct.pack(">hh", 0, number), bytes(6)) for number in (0, 1, 77)]
    found += [with_field(batch([one]), ATTRIBUTES, 0x30) for one in marker]
    return [*found, batch(sent[:1]), with_body(with_field(found[0], COUNT, 0), b"")]


@cache
def odd_batches() -> list[bytes]:
    """Batches in which something is wrong, rare, or far too much."""
    sent = [Sent(1_700_000_000_000 + number, b"k", b"v" * 500) for number in range(3)]
    packed = [batch(sent, codec) for codec in CODEC_NUMBERS if codec != "none"]
    plain = batch(sent)
    found = [with_body(one, one[61:] + b"more") for one in packed]
    found += [with_body(one, one[61:-9] + b"\xff" * 9) for one in packed]
    found += [with_body(one, one[61:-9]) for one in packed]
    found += [with_body(one, one[61:] * 2) for one in packed]
    found += [batch([Sent(1, None, bytes(100_000))], codec) for codec in CODEC_NUMBERS]
    for count in (-1, 0, 2, 4, 10_000, 2**31 - 1):
        found += [with_field(one, COUNT, count) for one in (plain, packed[0])]
    found += [with_field(plain, DELTA, delta) for delta in (-1, 2**31 - 1)]
    found += [with_field(plain, BASE_OFFSET, offset) for offset in (-5, 2**63 - 1, 2**63 - 2**33)]
    found += [with_field(plain, BASE_TIME, time) for time in (-1, -(2**63), 2**63 - 1)]
    found += [with_field(plain, ATTRIBUTES, bits) for bits in (1, 5, 7, 0x20, 0x28)]
    for at in (61, 62, 63, 64, 65):
        found += [checked(plain[:at] + byte + plain[at + 1 :]) for byte in (b"\xff", b"\x01", b"\x80")]
    found += [plain[:17] + b"bad!" + plain[21:], message_set(sent, 0), message_set(sent, 1, "gzip"), plain[:30]]
    found += [plain[:-1], packed[3][:70], with_field(plain, COUNT, -1)[:-1], plain[:8] + b"\xff" * 6, b"junk" * 9]
    return found


class Read:
    """What was read: how many batches have rows that were made together."""

    batches = 0


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    found = Read()

    def counted(group, *others):  # type: ignore[no-untyped-def]
        found.batches += len(group.batches.field)
        return record_rows(group, *others)

    for module in (fetches, produces):
        monkeypatch.setattr(module, "record_rows", counted)
    return found


def both_ways(
    talks: list[list[Frame]], sizes: list[int], tables: tuple[str, ...], limits: Limits, options: DecodeOptions
) -> tuple[list[dict[str, list[Row]]], list[dict[str, list[Row]]]]:
    """The rows of each connection, read together and one by one."""
    together, alone = (
        feed_in_batches([KafkaDecoder(limits, options) for _ in talks], talks, sizes, tables, later=later)[0]
        for later in (True, False)
    )
    return together, alone


def test_records_of_every_kind(monkeypatch: pytest.MonkeyPatch, read: Read) -> None:
    seen = 0
    for seed in range(TRIES):
        random = Random(seed)
        share = random.choice((0, 0, 0.01, 0.05))
        kinds = random.choices(plain_batches(), k=2000) + random.choices(odd_batches(), k=int(2000 * share))
        monkeypatch.setattr(test_batch_decode, "_batches", partial(list, kinds))
        for name, number in (("MAX_BYTES", 32 << 20), ("MAX_RECORDS", 1 << 20)):
            monkeypatch.setattr(records, name, random.choice((number, number, number, 30_000)))
        talks = [frames_of(talk(random), begins=False, cut=False) for _ in range(random.randrange(1, 6))]
        sizes = [random.randrange(1, 150) for _ in range(random.randrange(3))]
        tables = random.choice((TABLES, ("kafka_records",), ("kafka_records", "kafka_produce_batches", "expert_infos")))
        options = random.choice((DecodeOptions(), DecodeOptions(payload=True, payload_columns=("key",))))
        with resting(seed):
            together, alone = both_ways(talks, sizes, tables, random.choice(LIMITS), options)
        assert together == alone, seed
        seen += sum(len(rows["kafka_records"]) for rows in alone)
    assert read.batches > seen / 8


@pytest.mark.parametrize("number", range(len(odd_batches())))
def test_an_odd_batch_among_plain_ones(number: int) -> None:
    """Each kind once, in a Fetch's answer behind other batches, in front of them and alone, and in a Produce."""
    odd, plain = odd_batches()[number], plain_batches()[0]
    fields = [[plain], [odd], [plain, odd], [odd, plain], [plain]]
    said = list[Said]()
    for place, batches in enumerate(fields * 4):
        raw = b"".join(batches)
        said += _fetched(2 * place, raw)
        said += _produced(2 * place + 1, raw)
    for limits in LIMITS:
        together, alone = both_ways([frames_of(said, False, False)], [], TABLES, limits, DecodeOptions())
        assert together == alone


def _fetched(number: int, raw: bytes) -> list[Said]:
    """A Fetch of version 4 of one partition, and its answer."""
    asked = struct.pack(">hhi", 1, 4, number) + b"\0\1a" + struct.pack(">iiiib", -1, 100, 1, 1 << 20, 0)
    asked += struct.pack(">ih1siiqi", 1, 1, b"t", 1, 0, 5, 1 << 20)
    answer = struct.pack(">iiih1siihqqi", number, 0, 1, 1, b"t", 1, 0, 0, 900, 900, 0)
    return [
        Said(CLIENT_TO_SERVER, asked),
        Said(SERVER_TO_CLIENT, answer + struct.pack(">i", len(raw)) + raw),
    ]


def _produced(number: int, raw: bytes) -> list[Said]:
    """A Produce of version 3 to one partition, and its answer."""
    asked = struct.pack(">hhi", 0, 3, number) + b"\0\1a" + struct.pack(">hhi", -1, -1, 1000)
    asked += struct.pack(">ih1siii", 1, 1, b"t", 1, 0, len(raw)) + raw
    answer = struct.pack(">iih1siihqqi", number, 1, 1, b"t", 1, 0, 0, 2**63 - 4, -1, 0)
    return [Said(CLIENT_TO_SERVER, asked), Said(SERVER_TO_CLIENT, answer)]


def test_one_bomb_is_opened_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind it nothing that is compressed is opened together with others."""
    given = list[int]()

    def counted(codec: str, data: bytes, limit: int):  # type: ignore[no-untyped-def]
        found = decompress(codec, data, limit)
        given.append(len(found.data))
        return found

    monkeypatch.setattr(records, "decompress", counted)
    bomb = batch([Sent(1, None, bytes(3 << 20))], "gzip")
    said = [one for number in range(8) for one in _fetched(number, bomb)]
    together, alone = both_ways([frames_of(said, False, False)], [], TABLES, Limits(), DecodeOptions())
    assert together == alone
    assert len(given) == 1


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = batch([Sent(1, None, b"v" * 100)])
    blob = Blob(raw * 10 + bytes(64))
    monkeypatch.setattr(records, "MAX_BYTES", 3 * (len(raw) - 61))
    opener = OpenedOnce(blob, Limits())
    found = [opener._opened(61 + len(raw) * n, len(raw) * (n + 1), 0, 1) for n in range(10)]
    assert [one is not None for one in found] == [True] * 3 + [False] * 7
