"""What captures cost that are made to cost more than their size: linear in it, within one run on one machine."""

from __future__ import annotations

import time

import pytest

from tests.bench.attacks import NOTHING, SIZES, measured
from tests.support.attacks import ATTACKS
from tests.support.shares import share
from tests.support.wire import decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.registry import PROTOCOLS

SMALL, LARGE = 1, 4
# Linear would be 4; half as much again for what other programs on the machine do.
MOST_TIMES = 6.0
TRIES = 8
# Below, the clock and the constant costs of a run decide.
LEAST_S = 0.25
LEAST_MIB = 50
GROWING = sorted(set(ATTACKS) - {"clock_step", NOTHING, "times_at_the_ends"})
# Their smallest sizes take longest, since constant costs of connections and servers come first.
_LONG = {
    "fan_out",
    "fan_out_of_servers",
    "packed_messages",
    "probes_in_the_middle",
    "waiting_requests",
    "websocket_flows",
}


def seconds(name: str, size: int) -> float:
    """Processor time of decoding and of all tables and rules."""
    capture = ATTACKS[name](size)
    before = time.process_time()
    decoded = decode(capture, TABLES, block_bytes=8 << 20)
    with analysis_of(decoded, TABLES, ReadOptions(), PROTOCOLS.values()) as analysis:
        for table in TABLES:
            for _ in analysis.batches(table):
                pass
    return time.process_time() - before


@pytest.mark.parametrize("name", share(GROWING, set(GROWING) - _LONG))
def test_time_follows_the_size(name: str) -> None:
    """By the least of each of up to TRIES: beside other programs a run costs more than it takes, never less."""
    least = {(NOTHING, SMALL): float("inf"), (name, SMALL): float("inf"), (name, LARGE): float("inf")}
    for _ in range(TRIES):
        least = {run: min(so_far, seconds(*run)) for run, so_far in least.items()}
        idle, small, large = least.values()  # idle: what every run costs
        if large - idle < MOST_TIMES * max(small - idle, LEAST_S):
            return
    pytest.fail(f"{small - idle:.2f} s become {large - idle:.2f} s")


@pytest.mark.bench
@pytest.mark.parametrize("name", GROWING)
def test_memory_follows_the_size_at_most(name: str) -> None:
    """Peak memory of a process of its own, beyond what any capture takes."""
    nothing = measured(NOTHING, 1).mebibytes
    small, middle, large = (max(measured(name, size).mebibytes - nothing, LEAST_MIB) for size in SIZES)
    assert middle < MOST_TIMES / 2 * small
    assert large < MOST_TIMES * small
