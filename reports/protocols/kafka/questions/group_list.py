"""Every group of Kafka in a row, what looks worst first. In: sources and findings; out: rows.

Groups are those that somebody joined, committed for, fetched or acknowledged records of; share groups and streams
groups as well. How one stands (state, members, generation, lag) is told at the end of the time range, from all that
came before; what happened (commits, refusals, foreign commits, committers, findings) is of the time range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.severity import severity_rank
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.protocols.kafka.questions.groups import Group
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

Key = tuple[str | None, str | None]

_COMMITS = """
    select cluster_id, group_id, count(*) filter (error_code = 0) as commits,
           count(*) filter (error_code <> 0) as refused,
           count(*) filter (owner_member_id <> member_id) as foreign_commits,
           count(distinct struct_pack(client_address, client_id, member_id)) as committers
    from kafka_offset_commits where group_id is not null group by all"""
_SHARED = """
    select cluster_id, group_id, count(distinct exchange_id) as share_exchanges from (
        select cluster_id, group_id, exchange_id from kafka_share_fetches
        union all select cluster_id, group_id, exchange_id from kafka_share_acknowledges)
    where group_id is not null group by all"""
_SHARE_LAG = "select cluster_id, group_id, sum(lag)::bigint as lag from ({}) group by all"
_NAMES = ("commits", "refused", "foreign_commits", "committers", "share_exchanges")


def group_list(
    in_range: Source, at_end: Source, groups: Sequence[Group], before: Sequence[Group], found: Iterable[Finding]
) -> list[dict[str, Any]]:
    """cluster_id, group_id, state, type, members, generation, lag, grown (since `before`), counts and findings.

    found: findings, the worst first. groups: as they stand at the end of the range. before: as they stood at an
    earlier time, for the trend of the lag.
    """
    states = _by_group(group_states(at_end))
    counts = _by_group(rows(in_range, _COMMITS))
    shared = _by_group(rows(in_range, _SHARED))
    share_lags = _by_group(rows(at_end, _SHARE_LAG.format(view_sql(VIEWS["groups"]["share-offsets"]))))
    lags, earlier = _lags(groups), _lags(before)
    own = _findings(found)
    made = []
    for key in {*states, *counts, *shared, *share_lags, *lags}:
        state = states.get(key, {})
        told = {**counts.get(key, {}), **shared.get(key, {})}
        lag = lags.get(key, share_lags.get(key, {}).get("lag"))
        place, severities = own.get(key[1] or "", (None, []))
        made.append(
            {
                "cluster_id": key[0], "group_id": key[1], "state": state.get("state"),
                "type": state.get("type") or ("share" if key in shared or key in share_lags else None),
                "members": state.get("members"), "generation": state.get("generation"), "lag": lag,
                "grown": lag - earlier[key] if lag is not None and key in earlier else None,
                **{name: told.get(name, 0) for name in _NAMES},
                "findings": len(severities), "worst": max(severities, key=severity_rank, default=None), "place": place,
            }
        )  # fmt: skip
    return [_without_place(row) for row in sorted(made, key=_worst_first)]


def group_states(source: Source) -> list[dict[str, Any]]:
    """How each group stands: rows of the view of states."""
    return rows(source, view_sql(VIEWS["groups"]["state"]))


def _worst_first(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Groups with findings in the order of these, the others by what happened to them."""
    place = row["place"]
    counts = (row["foreign_commits"], row["refused"], row["lag"] or 0)
    return (place is None, place or 0, *(-count for count in counts), row["group_id"] or "", row["cluster_id"] or "")


def _without_place(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "place"}


def _lags(groups: Iterable[Group]) -> dict[Key, int]:
    """The sum over the partitions of which the lag is known; groups without one are left out."""
    found = {}
    for group in groups:
        known = [one.lag for one in group.partitions if one.lag is not None]
        if known:
            found[group.cluster_id, group.group_id] = sum(known)
    return found


def _findings(found: Iterable[Finding]) -> dict[str, tuple[int, list[str]]]:
    """Of each group that findings name: the place of the first of them, and their severities."""
    named: dict[str, tuple[int, list[str]]] = {}
    for place, finding in enumerate(found):
        group = finding.numbers.get("group")
        if group is not None:
            named.setdefault(str(group), (place, []))[1].append(finding.severity)
    return named


def _by_group(found: Iterable[dict[str, Any]]) -> dict[Key, dict[str, Any]]:
    return {(row["cluster_id"], row["group_id"]): row for row in found}
