"""Names of addresses as people keep them. In: the text of a file. Out: entries, and how many lines were passed over.

    10.77.0.12   ledger-a.shop   ledger-a           an /etc/hosts line: the address, its name, further names of it

    address,name,from,until,pod,namespace           CSV: `address`, and any of the columns below
    10.77.0.12,ledger-a,2026-11-20T11:00:00Z,,payments-7d4f,shop

    [[host]]                                        TOML: the same names
    address = "10.77.0.12"
    name = "ledger-a"
    until = 2026-11-20T11:24:05Z

Times are ISO 8601, UTC unless they name a zone. Loopback addresses are every machine's own: they name nobody.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from ipaddress import ip_address
from typing import Any

from wirewitness.analyser.base.times import ns_of
from wirewitness.analyser.capture.workloads.address_names import FIRST_NS, LAST_NS, Entry
from wirewitness.analyser.capture.workloads.workload import identity

COLUMNS = ("address", "name", "from", "until", "pod", "namespace", "workload", "container", "command", "user", "pid")
_TABLES = ("host", "hosts")


def hosts_entries(text: str) -> tuple[list[Entry], int]:
    """Of an /etc/hosts file. ValueError where no line is one of it."""
    found: list[Entry] = []
    wrong = 0
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        address = known_address(words[0])
        if address is None or len(words) < 2:
            wrong += 1
        elif names_somebody(address):
            found.append(Entry(address, identity(host=words[1], source="hosts")))
    if wrong and not found:
        raise ValueError("no line is an address with a name")
    return found, wrong


def csv_entries(text: str) -> tuple[list[Entry], int]:
    """Of CSV with a head line. ValueError for unknown columns, or where no line names anybody."""
    csv.field_size_limit(1 << 16)
    try:
        reader = csv.DictReader(io.StringIO(text), skipinitialspace=True)
        rows = [{(key or "").strip().lower(): value for key, value in row.items()} for row in reader]
    except csv.Error as error:
        raise ValueError(str(error)) from error
    return _entries(rows)


def toml_entries(text: str) -> tuple[list[Entry], int]:
    """Of TOML with a table for each entry. ValueError for anything else."""
    import tomllib

    document = tomllib.loads(text)
    unknown = [name for name in document if name not in _TABLES]
    rows = [row for name in _TABLES for row in document.get(name, ())]
    if unknown or not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"no tables [[host]] but {', '.join(unknown)[:60]}" if unknown else "no tables [[host]]")
    return _entries(rows)


def known_address(text: Any) -> str | None:
    """The address as tables have it; None where it is none."""
    try:
        return str(ip_address(str(text).strip().partition("%")[0]))
    except ValueError:
        return None


def names_somebody(address: str) -> bool:
    """Whether the address is one machine's: loopback and multicast addresses are everybody's."""
    one = ip_address(address)
    return not (one.is_loopback or one.is_multicast or one.is_unspecified or address == "255.255.255.255")


def _entries(rows: Iterable[Mapping[str, Any]]) -> tuple[list[Entry], int]:
    found: list[Entry] = []
    wrong = 0
    for row in rows:
        unknown = [str(name) for name in row if name not in COLUMNS]
        if unknown:
            raise ValueError(f"unknown {unknown[0][:40]!r}; known are {', '.join(COLUMNS)}")
        entry = _entry(row)
        if entry is None:
            wrong += 1
        elif names_somebody(entry.address):
            found.append(entry)
    if wrong and not found:
        raise ValueError("no entry has an address and a name")
    return found, wrong


def _entry(row: Mapping[str, Any]) -> Entry | None:
    """None where the row has no address, names nobody, or has a time that is none."""
    values = {name: None if value is None or value == "" else value for name, value in row.items()}
    address = known_address(values.get("address") or "")
    texts = {name: _text(values.get(name)) for name in COLUMNS[4:10]}
    pid = _text(values.get("pid"))
    one = identity(
        pid=int(pid) if pid and pid.isascii() and pid.isdecimal() and len(pid) <= 10 else None,
        host=_text(values.get("name")),
        source="hosts",
        **texts,
    )
    try:
        begins, ends = _time(values.get("from"), FIRST_NS), _time(values.get("until"), LAST_NS)
    except (ValueError, OverflowError):
        return None
    return Entry(address, one, begins, ends) if address and one.known else None


def _text(value: Any) -> str | None:
    return None if value is None or isinstance(value, dict | list) else str(value)


def _time(value: Any, unknown: int) -> int:
    if value is None:
        return unknown
    text = value.isoformat() if isinstance(value, datetime | date) else str(value).strip()
    return max(FIRST_NS, min(ns_of(text), LAST_NS))
