"""A part of an incident's capture accuses nobody whom the whole does not: one direction, a late begin, gaps, losses.

In: the incidents in `sample_pcaps/incidents`. Each is damaged, and what the rules about groups and producers say above
info may name only clients of groups that they name in the whole capture. Two captures in one, with equal names in two
clusters, give what each of them gives.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.conftest import SAMPLES
from tests.lab.incidents.second_network import OTHER_SUBNET, moved_packet
from tests.support.packets import Captured
from tests.support.shares import every, pairs, turns
from tests.support.wire import decode, lossy, packets_of
from wirewitness.analyser.analysis.all_rules import RULES, tables_needed
from wirewitness.analyser.analysis.needed import needed_tables
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.engine.incidents.incident_facts import facts_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.inputs import analysis_of
from wirewitness.dissectors.registry import PROTOCOLS

INCIDENTS = SAMPLES / "incidents"
CLIENT_PORTS_FROM = 30_000  # servers of the lab listen below
CODES = ("KAF1", "KAF2")
PARTS = 12
# Incidents of groups and producers; the others have nobody to accuse here.
NAMES = [
    "clean_stop-1", "group_other_topics-2", "hanging_transaction-2", "late_end_of_transaction-2", "link_down-2",
    "log_start_moved-1", "member_frozen-6", "member_killed-5", "never_commits-5", "offsets_deleted-2",
    "offsets_reset_back-2", "out_of_sequence-1", "poison_loop-3", "rolling_restart-10", "rolling_restart-13",
    "static_id_twice-3", "static_restart-3",
]  # fmt: skip

Damage = Callable[[Sequence[Captured]], Sequence[Captured]]
# Group, address and client id.
Client = tuple[Any, ...]


@cache
def packets(name: str, folder: Path) -> tuple[Captured, ...]:
    packed = (INCIDENTS / name / "capture.pcapng.zst").read_bytes()
    plain = folder / f"{name}.pcapng"
    plain.write_bytes(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read())
    found = tuple(packets_of(plain))
    plain.unlink()
    return found


def findings(captured: Sequence[Captured]) -> list[Finding]:
    """What these rules say above info. Tables of all rules are there: some read rows that only others have decoded."""
    tables = needed_tables(sorted(tables_needed(RULES)))
    with analysis_of(decode(captured, tables), tables, ReadOptions(), PROTOCOLS.values()) as analysis:
        found = run(analysis.connection, [RULES[code] for code in sorted(RULES) if code.startswith(CODES)])
    return [one for one in found if one.severity != "info"]


@cache
def whole(name: str, folder: Path) -> list[Finding]:
    return findings(packets(name, folder))


def named(found: Finding) -> set[Client]:
    numbers = json.loads(json.dumps(found.numbers, default=str))
    row = {"code": found.code, "ts_first": found.ts_first_ns, "ts_last": found.ts_last_ns}
    return {(numbers.get("group"), *client) for _, client in facts_of(row, numbers).culprits}


def one_side(captured: Sequence[Captured], of_clients: bool) -> list[Captured]:
    """What clients send, or what they get."""
    return [packet for packet in captured if _from_client(packet) == of_clients]


def _from_client(packet: Captured) -> bool:
    start = 14 + (packet.data[14] & 15) * 4
    return bool(struct.unpack_from(">H", packet.data, start)[0] >= CLIENT_PORTS_FROM)


def without(captured: Sequence[Captured], first: int, last: int) -> list[Captured]:
    """Some twelfths are missing."""
    size = len(captured)
    return [*captured[: size * first // PARTS], *captured[size * last // PARTS :]]


DAMAGES: dict[str, Damage] = {
    "requests only": partial(one_side, of_clients=True),
    "answers only": partial(one_side, of_clients=False),
    "the first third is missing": partial(without, first=0, last=4),
    "the first two thirds are missing": partial(without, first=0, last=8),
    "the second half is missing": partial(without, first=6, last=12),
    "a hole in the middle": partial(without, first=4, last=6),
    "a later hole": partial(without, first=6, last=8),
    "1 of 100 lost": partial(lossy, seed=1, share=0.01),
    "1 of 100 lost, others": partial(lossy, seed=2, share=0.01),
    "5 of 100 lost": partial(lossy, seed=3, share=0.05),
}
ALL = [(name, damage) for name in NAMES for damage in DAMAGES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("incidents")


@pytest.mark.parametrize(("name", "damage"), pairs(ALL, every(3, sorted(turns(NAMES, DAMAGES)))))
def test_a_part_accuses_nobody_whom_the_whole_does_not(name: str, damage: str, folder: Path) -> None:
    known = {client for one in whole(name, folder) for client in named(one)}
    said = findings(DAMAGES[damage](packets(name, folder)))
    wrong = [f"{one.code} {one.severity} {one.sentence}" for one in said if not named(one) <= known]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["group_other_topics-2", "member_frozen-6", "poison_loop-3", "out_of_sequence-1"])
def test_equal_names_in_two_clusters_are_two(name: str, folder: Path) -> None:
    own = packets(name, folder)
    both = sorted([*own, *(one._replace(data=moved_packet(one.data)) for one in own)], key=lambda one: one.ts_ns)
    said = findings(both)
    alone = sorted(one.code for one in whole(name, folder))
    assert alone
    assert sorted(one.code for one in said) == sorted(alone * 2)
    mixed = [one for one in said if len({OTHER_SUBNET in str(address) for _, address, _ in named(one)}) > 1]
    assert not mixed, [one.sentence for one in mixed]
