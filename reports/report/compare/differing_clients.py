"""Clients of two sources side by side: who came, who went, whose versions changed. In: two sources; out: rows.

A client is known by its id, or by its address where it has none: two captures of one system may come from other
networks. Of ids that are made anew at each start (UUIDs, long numbers) the made part is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from wirewitness.reports.base.questions.confidence import count_range, least_factor
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

THERE, AWAY = "there", "not there"
# What stands in an id that is another one at each start.
_MADE = "'[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9]{8,}|[0-9a-fA-F]{16,}'"
NAME = f"coalesce(regexp_replace(client_id, {_MADE}, '*', 'g'), client_address)"
# Of each side at most; who is left out of so many is no news.
_MOST = 20_000
_CLIENTS = f"""
    select protocol, {NAME} as client, any_value(client_id) as client_id, min(client_address) as client_address,
           sum(exchanges)::bigint as exchanges,
           string_agg(distinct concat_ws(' ', software_name, software_version), ', '
                      order by concat_ws(' ', software_name, software_version))
               filter (software_name is not null or software_version is not null) as library
    from ({VIEWS["clients"][""].sql}) as t group by all order by exchanges desc, client limit {_MOST}"""
_VERSIONS = f"""
    select protocol, {NAME} as client, coalesce(operation, 'not decoded') as operation,
           string_agg(distinct version, ', ' order by version) as versions
    from exchanges where version is not null group by all"""
Key = tuple[Any, ...]


def clients_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, client, client_id, client_address, before, after, exchanges of both, differs; only those that differ.

    before, after: whether it is there, or the libraries and the versions of operations that differ. differs: how much
    more one side has of what the client asked, at least (`confidence.py`); inf where both have it in other versions.
    """
    clients = _by_client(rows(a, _CLIENTS)), _by_client(rows(b, _CLIENTS))
    versions = _versions(a), _versions(b)
    made = []
    for key in {**clients[0], **clients[1]}:
        old, new = (side.get(key) for side in clients)
        if old and new:
            words = _other_versions((old, versions[0].get(key, {})), (new, versions[1].get(key, {})))
        else:
            words = (THERE if old else AWAY, THERE if new else AWAY)
        if not any(words):
            continue
        counts = [side["exchanges"] if side else 0 for side in (old, new)]
        known: Mapping[str, Any] = new or old or {}
        made.append(
            {
                "protocol": key[0], "client": key[1], "client_id": known["client_id"],
                "client_address": known["client_address"], "before": words[0], "after": words[1],
                "exchanges_a": counts[0], "exchanges_b": counts[1],
                "differs": inf if old and new else least_factor(count_range(counts[0]), count_range(counts[1])),
            }
        )  # fmt: skip
    return sorted(made, key=lambda row: (-row["differs"], -row["exchanges_a"] - row["exchanges_b"], str(row["client"])))


def _by_client(found: list[dict[str, Any]]) -> dict[Key, dict[str, Any]]:
    return {(row["protocol"], row["client"]): row for row in found}


def _versions(source: Source) -> dict[Key, dict[str, str]]:
    """Versions by operation of each client."""
    found: dict[Key, dict[str, str]] = {}
    for row in rows(source, _VERSIONS):
        found.setdefault((row["protocol"], row["client"]), {})[row["operation"]] = row["versions"]
    return found


def _other_versions(
    old: tuple[Mapping[str, Any], Mapping[str, str]], new: tuple[Mapping[str, Any], Mapping[str, str]]
) -> tuple[str, str]:
    """The library, and operations that both sides have, where their versions differ."""
    differ = sorted(name for name in old[1] if name in new[1] and old[1][name] != new[1][name])
    libraries = [side[0]["library"] or "" for side in (old, new)]
    sides = []
    for library, (_, versions) in zip(libraries, (old, new), strict=True):
        # A library is told at the start of a connection, which one side may have missed.
        told = [library] if all(libraries) and libraries[0] != libraries[1] else []
        sides.append("; ".join([*told, *(f"{name} {versions[name]}" for name in differ)]))
    return sides[0], sides[1]
