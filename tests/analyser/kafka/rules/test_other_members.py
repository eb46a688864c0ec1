"""Rules that ask what other members did meanwhile say what looking at all pairs says, in time that follows the size."""

from __future__ import annotations

import time
from random import Random
from typing import Any

import pytest

from tests.support.timing import follows_size
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S
from wirewitness.analyser.kafka.rules import kaf111_heartbeat_gap as gap
from wirewitness.analyser.kafka.rules import kaf126_rebalance_held_up as held
from wirewitness.analyser.kafka.rules import other_members as kept
from wirewitness.analyser.kafka.rules.members import is_elsewhere

START = 1_700_000_000 * NS_PER_S
Row = dict[str, Any]


def members(number: int, dice: Random, addresses: int) -> list[Row]:
    """Members of one group, most of which went silent within some seconds."""
    made = []
    for one in range(number):
        last = START + dice.randrange(12) * NS_PER_S // 2
        began = last + dice.choice([0, 0, 1]) * NS_PER_S if dice.random() < 0.7 else None
        lasts = dice.choice([500, 1000, 2000, 4000, 8000, 10_000]) if dice.random() < 0.7 else None
        made.append(
            {
                "member_id": f"m{one % max(number - 2, 1)}",
                "client_id": "c",
                "client_address": dice.choice([None, *(f"10.0.0.{n}" for n in range(addresses))]),
                "ended": dice.choice(["expired", "expired", "removed", "removed", "left", None]),
                "ts": START - dice.randrange(10) * NS_PER_S,
                "ts_last": last,
                "ts_silent": began,
                "max_heartbeat_gap_ms": lasts,
                "ts_ended": last + dice.randrange(24) * NS_PER_S // 2 if dice.random() < 0.9 else None,
                "exchange_id": "a",
                "last_exchange_id": dice.choice("ab"),
            }
        )
    return made


def read_again(member: Row, rebalances: list[Row]) -> int | None:
    if not held._died(member):
        return None
    ends: list[int] = [
        one["ts_end"] for one in rebalances if one["ts"] <= member["ts_ended"] + NS_PER_S and one["ts_end"]
    ]
    return min((end for end in ends if end >= member["ts_ended"]), default=int(member["ts_ended"]))


def others_died(death: kept.Death, others: list[kept.Death]) -> bool:
    return any(
        min(death.until_ns, other.until_ns) - max(death.since_ns, other.since_ns) >= death.stood_ns * 3 / 4
        and abs(death.since_ns - other.since_ns) <= 4 * NS_PER_S
        for other in others
        if is_elsewhere(death.member, other.member)
    )


def perhaps_died(death: kept.Death, member: Row) -> bool:
    if not is_elsewhere(death.member, member) or not kept._is_unsure(member):
        return False
    begin, lasts, ended = member["ts_silent"], member["max_heartbeat_gap_ms"], member["ts_ended"]
    if begin is not None:
        covered = lasts is None or min(begin + lasts * NS_PER_MS, death.until_ns) - begin >= death.stood_ns * 3 / 4
        return bool(covered and abs(begin - death.since_ns) <= 4 * NS_PER_S)
    return ended is not None and abs(ended - death.until_ns) <= 4 * NS_PER_S


def others_silent(one: gap._Silence, others: list[gap._Silence], unknown: list[Row]) -> bool:
    return any(
        other.lasts_ns >= one.lasts_ns * 2 / 3
        and min(one.end_ns, other.end_ns) - max(one.begin_ns, other.begin_ns) >= one.lasts_ns / 2
        for other in others
        if is_elsewhere(one.member, other.member)
    ) or any(
        is_elsewhere(one.member, row) and row["ts"] <= one.begin_ns and row["ts_last"] >= one.end_ns for row in unknown
    )


@pytest.mark.parametrize("seed", range(60))
def test_as_looking_at_all_pairs(seed: int) -> None:
    dice = Random(seed)
    rows = members(dice.choice([1, 2, 3, 5, 30]), dice, dice.choice([1, 1, 2, 4]))
    begun = [START + dice.randrange(40) * NS_PER_S // 2 for _ in range(12)]
    rebalances: list[Row] = [
        {"ts": one, "ts_end": one + dice.randrange(9) * NS_PER_S if dice.random() < 0.8 else None} for one in begun
    ]
    found = held._read_again_ns(rows, rebalances)
    assert found == [read_again(row, rebalances) for row in rows]
    deaths = [
        kept.Death(row, held._silent_since_ns(row), until)
        for row, until in zip(rows, found, strict=True)
        if until is not None and until >= held._silent_since_ns(row)
    ]
    is_shared = kept.shared_deaths(deaths, rows)
    for death in deaths:
        expected = others_died(death, deaths) or any(perhaps_died(death, row) for row in rows)
        assert is_shared(death) == expected
    silences = [one for one in map(gap._silence, rows) if one is not None and one.lasts_ns >= 0]
    unknown = [row for row in rows if row["ended"] != "expired" and gap._has_gaps(row)]
    assert gap._shared(silences, unknown) == [others_silent(one, silences, unknown) for one in silences]


def seconds(number: int) -> float:
    """Of members that all died at one address: none of them is explained by another, however many are looked at."""
    rows = [
        {**row, "client_address": "10.0.0.1", "ended": "expired", "ts_ended": row["ts_last"] + 10 * NS_PER_S + place}
        for place, row in enumerate(members(number, Random(1), 1))
    ]
    rebalances = [{"ts": row["ts_last"], "ts_end": row["ts_ended"]} for row in rows]
    begun = time.process_time()
    found = held._read_again_ns(rows, rebalances)
    deaths = [
        kept.Death(row, row["ts_last"], until) for row, until in zip(rows, found, strict=True) if until is not None
    ]
    assert not any(map(kept.shared_deaths(deaths, rows), deaths))
    assert not any(gap._shared([one for one in map(gap._silence, rows) if one is not None], []))
    return time.process_time() - begun


def test_time_follows_the_size() -> None:
    assert not follows_size(seconds, 500, 8000, 40, 0.1)  # linear: 16, of pairs: 256
