"""Ids of endpoint pairs: dense, exact, the same for both directions."""

import ipaddress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.capture.reading import read_bytes
from tests.support.packets import Captured, ethernet, ipv4, pcap, tcp
from tests.support.shares import examples
from wirewitness.analyser.capture.endpoints import Addresses, Endpoints, EndpointTable

# (source, port, destination, port, encapsulation); few values, so that rows repeat and differ in one place only
addresses4 = st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2", "255.255.255.255"])
addresses6 = st.sampled_from(["::", "::1", "::a00:1", "2001:db8::1", "2001:db8:0:1::1", "ffff::"])
ports = st.sampled_from([0, 1, 9092, 65535])
encapsulations = st.sampled_from(["", "vlan 1", "vlan 1/2"])
rows4 = st.tuples(addresses4, ports, addresses4, ports, encapsulations)
rows6 = st.tuples(addresses6, ports, addresses6, ports, encapsulations)
Row = tuple[str, int, str, int, str]


def columns(table: EndpointTable, rows: list[Row]) -> Addresses:
    """The rows as the capture layer hands them to the table."""

    def words(values: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
        return np.array(values, np.uint64)

    sources, destinations = ([ipaddress.ip_address(row[place]) for row in rows] for place in (0, 2))
    mask = (1 << 64) - 1
    return Addresses(
        words([int(a) >> 64 for a in sources]),
        words([int(a) & mask for a in sources]),
        words([row[1] for row in rows]),
        words([int(a) >> 64 for a in destinations]),
        words([int(a) & mask for a in destinations]),
        words([row[3] for row in rows]),
        words([table.encapsulation_id(row[4]) for row in rows]),
        np.array([a.version == 6 for a in sources], np.bool_),
    )


def expected_ends(row: Row) -> tuple[Endpoints, bool]:
    source, destination = (ipaddress.ip_address(row[0]), row[1]), (ipaddress.ip_address(row[2]), row[3])
    low, high = sorted([source, destination])
    return Endpoints(str(low[0]), low[1], str(high[0]), high[1], row[4]), source == low


@given(st.lists(st.lists(st.one_of(rows4, rows6), max_size=30), max_size=4))
@examples(150)
def test_ids_are_exact_and_in_order_of_appearance(batches: list[list[Row]]) -> None:
    table = EndpointTable()
    seen: dict[Endpoints, int] = {}
    for rows in batches:
        pairs, from_low = table.assign(columns(table, rows))
        for row, pair, low in zip(rows, pairs.tolist(), from_low.tolist(), strict=True):
            ends, is_low = expected_ends(row)
            assert pair == seen.setdefault(ends, len(seen))
            assert table[pair] == ends
            assert low == is_low
        known = pairs.astype(np.int64)
        assert table.many(known) == [table[pair] for pair in pairs.tolist()]
        ports = [(ends.low_port, ends.high_port) for ends in map(table.__getitem__, pairs.tolist())]
        assert list(zip(*table.ports(known).tolist(), strict=True)) == ports
    assert len(table) == len(seen)


@given(st.lists(st.tuples(st.lists(st.one_of(rows4, rows6), max_size=30), st.integers(0, 2**30)), max_size=8))
@examples(150)
def test_ids_of_forgotten_pairs_are_used_again(rounds: list[tuple[list[Row], int]]) -> None:
    """After each batch some pairs are forgotten, by the bits of a number."""
    table = EndpointTable()
    seen: dict[Endpoints, int] = {}
    most = 0
    for rows, chosen in rounds:
        pairs, _ = table.assign(columns(table, rows))
        for row, pair in zip(rows, pairs.tolist(), strict=True):
            ends, _ = expected_ends(row)
            if ends not in seen:
                assert pair not in seen.values()
            assert pair == seen.setdefault(ends, pair)
        assert all(table[pair] == ends for ends, pair in seen.items())
        most = max(most, len(seen))
        gone = [ends for ends, pair in seen.items() if chosen >> pair & 1]
        table.forget(np.array([seen.pop(ends) for ends in gone], np.int64))
        assert (table.known, len(table)) == (len(seen), most)


def test_many_pairs() -> None:
    table, count = EndpointTable(), 200_000
    rng = np.random.default_rng(7)
    client, port = np.arange(count) // 50 + 0x0A000000, np.arange(count) % 50 + 1024
    order = np.concatenate((np.arange(count), rng.integers(0, count, 100_000)))
    zero = np.zeros(len(order), np.uint64)
    client, port = client[order].astype(np.uint64), port[order].astype(np.uint64)
    server, service = zero + np.uint64(0x0B000001), zero + np.uint64(9092)
    is_ipv6 = np.zeros(len(order), np.bool_)
    pairs, from_low = table.assign(Addresses(zero, client, port, zero, server, service, zero, is_ipv6))
    assert len(table) == count
    assert (pairs == order).all()
    assert from_low.all()
    back, from_low = table.assign(Addresses(zero, server, service, zero, client, port, zero, is_ipv6))
    assert (back == order).all()
    assert not from_low.any()
    assert table[123_456] == (str(ipaddress.IPv4Address(0x0A000000 + 123_456 // 50)), 1024 + 6, "11.0.0.1", 9092, "")


def test_equal_hashes_of_different_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EndpointTable, "_hash", lambda _, words: np.zeros(len(words[0]), np.uint64))
    table = EndpointTable()
    rows: list[Row] = [("10.0.0.1", n % 9, "10.0.0.2", 9092, "") for n in range(40)]
    pairs, _ = table.assign(columns(table, rows))
    assert [table[pair].low_port for pair in pairs.tolist()] == [row[1] for row in rows]
    assert len(table) == 9


def test_a_full_table_leaves_further_pairs_out() -> None:
    def frame(port: int, vlan: int = 0) -> Captured:
        tags = [(0x8100, vlan)] if vlan else []
        return Captured(0, ethernet(ipv4(tcp(b"x", source_port=port)), tags=tags))

    capture = pcap([frame(1), frame(2), frame(3), frame(2, 7), frame(1)])
    segments, stats = read_bytes(capture, max_pairs=2)
    assert [s.packet for s in segments] == [1, 2, 5]
    assert stats.undecoded_packets == {"too_many_pairs": 2}


def test_forgotten_pairs_make_room() -> None:
    table = EndpointTable(max_pairs=2)
    rows: list[Row] = [("10.0.0.1", port, "10.0.0.2", 9092, "") for port in (1, 2, 3)]
    assert table.assign(columns(table, rows))[0].tolist() == [0, 1, -1]
    table.forget(np.array([0]))
    assert table.assign(columns(table, rows[1:]))[0].tolist() == [1, 0]
    assert table.assign(columns(table, rows[:1]))[0].tolist() == [-1]


@pytest.mark.parametrize("pair", [-1, 0])
def test_unknown_id(pair: int) -> None:
    with pytest.raises(IndexError):
        EndpointTable()[pair]
