"""Files that name addresses. In: bytes of a file. Out: nothing, or an exception for what no file may do.

An input is the text of a file of any form that `--hosts` takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from tests.fuzz.mutate import broken
from wirewitness.analyser.analysis.workloads_in_sql import names_table
from wirewitness.analyser.capture.workloads.address_names import FIRST_NS, LAST_NS, AddressNames, Found
from wirewitness.analyser.capture.workloads.files import NamesFileError, parsed
from wirewitness.analyser.capture.workloads.workload import Identity

_TIMES = ("2026-11-20T11:00:00Z", "2026-11-20T12:00:00+02:00", "1600-01-01", "9999-12-31T23:59:59Z", "soon", "", None)
_ADDRESSES = ("10.0.0.1", "10.0.0.2", "fd00::1", "::ffff:10.0.0.1", "127.0.0.1", "10.0.0.256", "", None, 7)
_NAMES = ("payments", "p\u202ey", "x" * 300, "", None, ["a"], {"b": 1})


def check(data: bytes) -> None:
    """The file is refused in one line, or its entries answer for every time."""
    try:
        file = parsed("fuzz", data)
    except NamesFileError as error:
        if "\n" in str(error):
            raise AssertionError(f"more than a line: {error}") from error
        return
    names = AddressNames([file])
    table = names_table(names)
    for address, entries in names.addresses.items():
        times = {at for entry in entries for at in (entry.from_ns, entry.until_ns)} | {0, FIRST_NS, LAST_NS}
        for ts_ns in sorted(times):
            one, found = names.at(address, ts_ns)
            holding = _fullest({entry.identity for entry in entries if entry.from_ns <= ts_ns < entry.until_ns})
            if ts_ns < LAST_NS:
                assert (len(holding) == 1) == (found is Found.NAMED)
                assert one in holding or found is not Found.NAMED
    assert table.num_rows >= 0


def _fullest(holding: set[Identity]) -> set[Identity]:
    """Without those of which another one of the same kind of file says all, and more."""
    told = {one: {name: value for name, value in one._asdict().items() if value is not None} for one in holding}
    return {
        one for one, own in told.items()
        if not any(own.items() < other.items() and own["source"] == other["source"] for other in told.values())
    }  # fmt: skip


def made(dice: Random) -> bytes:
    """A file of some form."""
    return _MADE[dice.randrange(len(_MADE))](dice).encode("utf-8", "surrogatepass")


def change(data: bytes, dice: Random) -> bytes:
    """Another file."""
    return made(dice) if dice.random() < 0.3 else broken(data, dice)


def seeds() -> Iterator[bytes]:
    """Files of every form."""
    return (made(Random(number)) for number in range(60))


def _hosts(dice: Random) -> str:
    return "".join(f"{dice.choice(_ADDRESSES)}\t{dice.choice(_NAMES)} # x\n" for _ in range(dice.randrange(1, 6)))


def _csv(dice: Random) -> str:
    rows = [
        ",".join(str(dice.choice(some) or "") for some in (_ADDRESSES, _NAMES, _TIMES, _TIMES, _NAMES, ("1", "x")))
        for _ in range(dice.randrange(1, 6))
    ]
    return "\n".join(["address,name,from,until,pod,pid", *rows])


def _toml(dice: Random) -> str:
    rows = []
    for _ in range(dice.randrange(1, 5)):
        quoted = (json.dumps(str(dice.choice(some))) for some in (_ADDRESSES, _NAMES, _TIMES, _TIMES))
        address, name, begins, ends = quoted
        rows.append(f"[[host]]\naddress = {address}\nname = {name}\nfrom = {begins}\nuntil = {ends}\n")
    return "".join(rows)


def _pods(dice: Random) -> str:
    def value(*some: object) -> object:
        return dice.choice((*some, None, 3, [], {}, "x")) if dice.random() < 0.3 else dice.choice(some)

    def pod() -> dict[str, object]:
        terminated = {"terminated": value({"finishedAt": value(*_TIMES)})}
        return {
            "kind": value("Pod", "Pod", "Pod", "Node", "Service"),
            "metadata": value({"name": value(*_NAMES), "namespace": "shop", "deletionTimestamp": value(*_TIMES),
                               "labels": value({"pod-template-hash": "7d"}),
                               "ownerReferences": value([value({"kind": "ReplicaSet", "name": "pay-7d"})])}),
            "spec": value({"nodeName": value("node-1"), "hostNetwork": value(True, False),
                           "containers": value([value({"name": "app"})])}),
            "status": value({"phase": value("Running", "Failed"), "podIP": value(*_ADDRESSES),
                             "podIPs": value([value({"ip": value(*_ADDRESSES)})]), "hostIP": value(*_ADDRESSES),
                             "startTime": value(*_TIMES),
                             "addresses": value([{"type": "InternalIP", "address": "10.0.0.9"}]),
                             "containerStatuses": value([value({"state": value(terminated)})])}),
        }  # fmt: skip

    return json.dumps({"kind": value("List", "PodList"), "items": [pod() for _ in range(dice.randrange(1, 5))]})


_MADE = (_hosts, _csv, _toml, _pods)
