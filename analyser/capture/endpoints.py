"""Endpoint pairs. In: columns of addresses and ports. Out: a dense id for each unordered pair, and which side sent.

A hash table in arrays: open addressing with linear probing, the full key compared, so that equal ids mean equal keys.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.capture.model import Flags, Ids, Ints, Words

FIRST_SLOT_BITS, FIRST_KEYS = 12, 1024
KEY_WORDS = 5
SHARD_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd and without a pattern: 2**64 divided by the golden ratio


class Endpoints(NamedTuple):
    """The two ends of a pair; low is the one with the smaller address, or the smaller port on one address."""

    low_address: str
    low_port: int
    high_address: str
    high_port: int
    encapsulation: str


@dataclass(slots=True)
class Addresses:
    """Columns of a batch: where each segment came from and went to. encapsulation: ids from encapsulation_id."""

    source_high: Words
    source_low: Words
    source_port: Words
    destination_high: Words
    destination_low: Words
    destination_port: Words
    encapsulation: Words
    is_ipv6: Flags


def from_low_side(a: Addresses) -> Flags:
    """True where the source is the low endpoint: compared by address, then by port."""
    result: Flags = a.source_port <= a.destination_port
    result = (a.source_low < a.destination_low) | ((a.source_low == a.destination_low) & result)
    if a.is_ipv6.any():
        result = (a.source_high < a.destination_high) | ((a.source_high == a.destination_high) & result)
    return result


def pair_keys(a: Addresses, from_low: Flags) -> tuple[Words, ...]:
    """The key as words: low address, high address (low words first), then ports, encapsulation and family."""
    low_port = np.where(from_low, a.source_port, a.destination_port)
    high_port = np.where(from_low, a.destination_port, a.source_port)
    tail = (low_port << np.uint64(48)) | (high_port << np.uint64(32)) | (a.encapsulation << np.uint64(1))
    low, high = (
        np.where(from_low, a.source_low, a.destination_low),
        np.where(from_low, a.destination_low, a.source_low),
    )
    if not a.is_ipv6.any():
        return low, high, tail
    tail |= a.is_ipv6
    low_top = np.where(from_low, a.source_high, a.destination_high)
    return low, high, tail, low_top, np.where(from_low, a.destination_high, a.source_high)


def ipv4_text(number: int) -> str:
    """The address in dotted form; IPv4Address takes five times as long, and every flow has two."""
    return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


class _Texts(dict[tuple[int, int, int], str]):
    """Addresses as texts: the upper and the lower half, and the version of IP."""

    def __missing__(self, key: tuple[int, int, int]) -> str:
        top, low, version = key
        made = self[key] = ipv4_text(low) if version == 4 else str(IPv6Address(top << 64 | low))
        return made


def _digests(words: tuple[Words, ...]) -> Words:
    """Of each key a number that is the same in every process; encapsulations have no part in it."""
    mixed: Words = np.zeros(len(words[0]), np.uint64)
    for word, shift in zip(words, (0, 0, 32, 0, 0), strict=True):  # ports are the upper half of the third word
        mixed = (mixed ^ (word >> np.uint64(shift))) * SHARD_FACTOR
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _numbers(keys: Words) -> Words:
    """The encapsulations in some keys."""
    numbers: Words = (keys[2] & np.uint64(0xFFFFFFFF)) >> np.uint64(1)
    return numbers


class EndpointTable:
    """Ids of endpoint pairs, from 0 in the order of their first packet. One table may serve several captures.

    The id of a forgotten pair is given to another one later; len() is one more than the highest id so far.
    """

    def __init__(self, max_pairs: int = 4_000_000) -> None:
        """max_pairs: further pairs get the id -1."""
        self._max_pairs = max_pairs
        self._count = 0
        self._digests: Words = np.zeros(FIRST_KEYS, np.uint64)
        self._forgotten: Flags = np.zeros(FIRST_KEYS, np.bool_)
        self._free: Ints = np.zeros(0, np.int64)
        self._keys: Words = np.zeros((KEY_WORDS, FIRST_KEYS), np.uint64)
        self._slot_bits = FIRST_SLOT_BITS
        self._slots: Ids = np.full(1 << FIRST_SLOT_BITS, -1, np.int32)
        # secret odd factors: a sender cannot choose addresses that share a slot
        self._factors = [np.uint64(secrets.randbits(64) | 1) for _ in range(KEY_WORDS)]
        self._encapsulations: dict[str, int] = {"": 0}
        self._encapsulation_texts = [""]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, pair: int) -> Endpoints:
        """The ends of a pair; IndexError when there is no such id."""
        if not 0 <= pair < self._count:
            raise IndexError(pair)
        low, high, tail, low_top, high_top = self._keys[:, pair].tolist()
        ports, encapsulation = tail >> 32, (tail & 0xFFFFFFFF) >> 1
        if tail & 1:
            ends = str(IPv6Address(low_top << 64 | low)), str(IPv6Address(high_top << 64 | high))
        else:
            ends = ipv4_text(low), ipv4_text(high)
        return Endpoints(ends[0], ports >> 16, ends[1], ports & 0xFFFF, self._encapsulation_texts[encapsulation])

    def many(self, pairs: Ints) -> list[Endpoints]:
        """The ends of many pairs, which there must be; an address that many share becomes text once."""
        low, high, tail, low_top, high_top = self._keys[:, pairs]
        texts = _Texts()
        is_ipv6 = (tail & np.uint64(1)).astype(np.bool_)
        ports, encapsulations = (tail >> np.uint64(32)).tolist(), _numbers(self._keys[:, pairs]).tolist()
        if is_ipv6.any():
            tops = zip(low_top.tolist(), high_top.tolist(), is_ipv6.tolist(), strict=True)
            kinds = [(one, other, 6) if new else (0, 0, 4) for one, other, new in tops]
        else:
            kinds = [(0, 0, 4)] * len(ports)
        return [
            Endpoints(texts[one, low_part, kind], port >> 16, texts[other, high_part, kind], port & 0xFFFF, names)
            for low_part, high_part, port, names, (one, other, kind) in zip(
                low.tolist(),
                high.tolist(),
                ports,
                map(self._encapsulation_texts.__getitem__, encapsulations),
                kinds,
                strict=True,
            )
        ]

    def ports(self, pairs: Ints) -> Ints:
        """The ports of the low and of the high ends of these pairs, a row each."""
        tail = self._keys[2, pairs]
        return np.stack(((tail >> np.uint64(48)), (tail >> np.uint64(32)) & np.uint64(0xFFFF))).astype(np.int64)

    @property
    def known(self) -> int:
        """Pairs that have an id now."""
        return self._count - len(self._free)

    def forget(self, pairs: Ints) -> None:
        """Forget pairs that nobody asks for any more; should one come again, it gets another id."""
        self._forgotten[pairs] = True
        self._free = np.flatnonzero(self._forgotten[: self._count])
        self._fill_slots()

    def shards(self, pairs: Ids, of: int) -> Ints:
        """The share (0 to of - 1) of each of these pairs: a digest of addresses and ports, so that every process finds
        the same."""
        return (self._digests[pairs] % np.uint64(of)).astype(np.int64)

    @property
    def has_encapsulations(self) -> bool:
        """True once any packet came inside something."""
        return len(self._encapsulation_texts) > 1

    def bare_hashes(self) -> Words:
        """For every pair a hash of its endpoints alone; pairs that differ in encapsulation only share it."""
        words = self._keys[:, : self._count].copy()
        words[2] &= np.uint64(0xFFFFFFFF_00000001)
        return self._hash(tuple(words))

    def keys(self, pairs: Ids) -> tuple[Words, dict[int, str]]:
        """The keys of these pairs, one column each, and the encapsulations that they number; see `known_as`."""
        keys = self._keys[:, pairs]
        return keys, {number: self._encapsulation_texts[number] for number in np.unique(_numbers(keys)).tolist()}

    def known_as(self, keys: Words, encapsulations: Mapping[int, str]) -> Ids:
        """Ids of pairs that another table gave the keys of; new ones are added, -1 where the table is full."""
        keys = keys.copy()
        numbers = _numbers(keys)
        for number in np.unique(numbers).tolist():
            own = self.encapsulation_id(encapsulations[number])
            tail = (keys[2] >> np.uint64(32) << np.uint64(32)) | (keys[2] & np.uint64(1)) | np.uint64(own << 1)
            keys[2] = np.where(numbers == number, tail, keys[2])
        return self._ids(tuple(keys))

    def encapsulation_id(self, text: str) -> int:
        """The number of an encapsulation ("" is 0), or -1 when the table is full."""
        number = self._encapsulations.get(text)
        if number is None:
            if self._count >= self._max_pairs:
                return -1
            number = self._encapsulations[text] = len(self._encapsulations)
            self._encapsulation_texts.append(text)
        return number

    def assign(self, addresses: Addresses) -> tuple[Ids, Flags]:
        """(pair, from_low) for each row; new pairs are added. pair is -1 where the table is full."""
        from_low = from_low_side(addresses)
        return self._ids(pair_keys(addresses, from_low)), from_low

    def _ids(self, words: tuple[Words, ...]) -> Ids:
        """The id of each key; new ones are added, -1 where the table is full."""
        hashes = self._hash(words)
        pairs, missing = self._find(words, hashes)
        while len(missing):
            rows = tuple(word[missing] for word in words)
            if not self._add(rows, hashes[missing]):
                break
            found, still = self._find(rows, hashes[missing])
            pairs[missing] = found
            missing = missing[still]
        return pairs

    def _hash(self, words: tuple[Words, ...]) -> Words:
        result = words[0] * self._factors[0]
        for word, factor in zip(words[1:], self._factors[1:], strict=False):
            result += (word ^ (word >> np.uint64(31))) * factor
        result ^= result >> np.uint64(32)
        result *= self._factors[0]
        return result

    def _find(self, words: tuple[Words, ...], hashes: Words) -> tuple[Ids, Ints]:
        """Ids of the rows, -1 where unknown, and the rows that are unknown."""
        mask = (1 << self._slot_bits) - 1
        slots = (hashes >> np.uint64(64 - self._slot_bits)).astype(np.int64)
        pairs = self._slots[slots]
        rows = np.flatnonzero(~self._equal(pairs, words))
        while True:
            rows = rows[pairs[rows] >= 0]
            if not len(rows):
                return pairs, np.flatnonzero(pairs < 0)
            slots[rows] = (slots[rows] + 1) & mask
            pairs[rows] = self._slots[slots[rows]]
            rows = rows[~self._equal(pairs[rows], tuple(word[rows] for word in words))]

    def _equal(self, pairs: Ids, words: tuple[Words, ...]) -> Flags:
        """Where the key of the id is the row's key. The tail tells the family, so IPv4 needs only three words."""
        equal: Flags = pairs >= 0
        for stored, word in zip(self._keys, words, strict=False):
            equal &= stored[pairs] == word
        return equal

    def _add(self, words: tuple[Words, ...], hashes: Words) -> int:
        """Add one key for each distinct hash, in row order; keys that share a whole hash wait for the next round."""
        _, first = np.unique(hashes, return_index=True)
        rows = np.sort(first)[: self._max_pairs - self.known]
        again = self._free[: len(rows)]
        fresh = np.concatenate((again, np.arange(self._count, self._count + len(rows) - len(again))))
        self._reserve(self._count + len(rows) - len(again))
        self._free, self._forgotten[again] = self._free[len(again) :], False
        for stored in self._keys[len(words) :]:
            stored[again] = 0
        for stored, word in zip(self._keys, words, strict=False):
            stored[fresh] = word[rows]
        self._digests[fresh] = _digests(tuple(self._keys[:, fresh]))
        self._count += len(rows) - len(again)
        self._place(fresh, hashes[rows])
        return len(rows)

    def _reserve(self, count: int) -> None:
        """Make room for `count` keys, at most a quarter of the slots in use."""
        if count > self._keys.shape[1]:
            size = max(count, 2 * self._keys.shape[1])
            keys, digests = np.zeros((KEY_WORDS, size), np.uint64), np.zeros(size, np.uint64)
            forgotten = np.zeros(size, np.bool_)
            keys[:, : self._count] = self._keys[:, : self._count]
            digests[: self._count] = self._digests[: self._count]
            forgotten[: self._count] = self._forgotten[: self._count]
            self._keys, self._digests, self._forgotten = keys, digests, forgotten
        if count * 4 > len(self._slots):
            self._slot_bits = (count * 8).bit_length()
            self._slots = np.full(1 << self._slot_bits, -1, np.int32)
            self._fill_slots()

    def _fill_slots(self) -> None:
        self._slots.fill(-1)
        pairs = np.flatnonzero(~self._forgotten[: self._count])
        self._place(pairs, self._hash(tuple(self._keys[:, pairs])))

    def _place(self, ids: Ints, hashes: Words) -> None:
        """Write ids into the first free slot behind their own; of several that want one slot the last wins."""
        mask = (1 << self._slot_bits) - 1
        slots = (hashes >> np.uint64(64 - self._slot_bits)).astype(np.int64)
        while len(ids):
            free = self._slots[slots] < 0
            self._slots[slots[free]] = ids[free]
            left = self._slots[slots] != ids
            ids, slots = ids[left], (slots[left] + 1) & mask
