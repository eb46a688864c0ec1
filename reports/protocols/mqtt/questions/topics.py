"""MQTT topics as a tree, and the messages of a branch. In: a source; out: rows, or SELECTs over registered tables.

A branch is named by how all topics below it begin: "" is the whole tree, "house/" all of house/..., "/" all topics that
begin with a slash. The topic in a branch's own place is its name without the last slash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.words import shared_start
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.source import Source, all_rows, rows
from wirewitness.reports.protocols.mqtt.questions.rows import WAY

# Rows of one branch that are told of, and branches that can be open at a time.
MOST_ROWS, MOST_OPEN = 50, 40
# A longer name cannot be opened in the tree: every row below it would say it again.
LONGEST_BRANCH = 4096

# By what the rows of a branch can be ordered, the greatest first but for the name.
ORDERS = {
    "published": "published desc", "sent_on": "sent_on desc", "payload_bytes": "payload_bytes desc nulls last",
    "topics": "topics desc", "retained": "retained desc", "latest": "latest_ms desc", "segment": "segment",
}  # fmt: skip

_COUNTED = """count(distinct topic) as topics,
           count(*) filter (direction = 'client_to_server') as published,
           count(*) filter (direction = 'client_to_server') * 1e9 / {span} as per_second,
           count(*) filter (direction = 'server_to_client') as sent_on,
           sum(payload_bytes)::bigint as payload_bytes,
           count(distinct client_id) filter (direction = 'client_to_server') as publishers,
           count(distinct flow_id) filter (direction = 'server_to_client') as receivers,
           count(*) filter (retain) as retained, max(epoch_ns(ts)) / 1e6 as latest_ms"""
_TREE = f"""
    with branches(branch, level) as (values {{branches}}),
    own as (
        select branch, split_part(topic, '/', level) as segment, mqtt_publishes.*
        from mqtt_publishes join branches on starts_with(topic, branch) where {{matching}}),
    grouped as (
        select branch, segment, {_COUNTED},
               min(left(topic, {LONGEST_BRANCH})) as least, max(left(topic, {LONGEST_BRANCH})) as greatest
        from own group by branch, segment)
    select *, count(*) over (partition by branch) as siblings,
           row_number() over (partition by branch order by {{order}}, segment) as place
    from grouped qualify place <= {MOST_ROWS} order by branch, place"""
_TOPICS = f"""
    select topic, any_value(topic || '/') as branch, {_COUNTED}, max(ts) as latest
    from mqtt_publishes where topic is not null and {{under}} group by topic"""
_KIND = "case direction when 'client_to_server' then 'published' else 'forwarded' end"
_OVER_TIME = """
    select epoch_ns(ts) // {width} * {width} / 1e6 as t, {kind} as kind, count(*) as messages
    from mqtt_publishes where {under} group by all order by all"""
_BEFORE = """
    with one as (select * from mqtt_publishes where message_id = {id})
    select other.message_id, other.packet, epoch_ns(other.ts) as ts_ns,
           epoch_ns(one.ts) - epoch_ns(other.ts) as apart_ns, one.topic,
           other.payload_crc32 is not distinct from one.payload_crc32
               and other.payload_bytes is not distinct from one.payload_bytes as same
    from mqtt_publishes as other join one on other.topic = one.topic and other.direction = one.direction
        and (one.direction = 'client_to_server' or other.flow_id = one.flow_id)
        and (other.ts, other.file, other.packet, other.message_id) < (one.ts, one.file, one.packet, one.message_id)
    where other.first_message_id is null
    order by other.ts desc, other.file desc, other.packet desc, other.message_id desc limit 1"""


class Branch(NamedTuple):
    """A row of the tree: what lies at one place or below it.

    branch: how all topics below begin. label: its levels beyond the branch in which it stands; several where nothing
    else lies between. deeper: something lies below. facts: topics, published, per_second, sent_on, payload_bytes,
    publishers, receivers, retained (messages with that flag), latest_ms (Unix ms of the last message).
    """

    branch: str
    label: str
    deeper: bool
    facts: Mapping[str, Any]


class Level(NamedTuple):
    """The rows of an open branch, and how many there are in all."""

    rows: tuple[Branch, ...]
    total: int


def topic_tree(
    source: Source, opened: Sequence[str], span_ns: int, *, containing: str = "", order: str = "published"
) -> dict[str, Level]:
    """The rows of the whole tree's first level ("") and of the branches in `opened`, of each the first MOST_ROWS.

    At most MOST_OPEN branches are looked at. span_ns: for the rate. containing: of topics with this text, in either
    case. order: a key of ORDERS.
    """
    branches = dict.fromkeys(["", *opened[:MOST_OPEN]])
    places = ", ".join(f"({literal(one)}, {one.count('/') + 1})" for one in branches)
    matching = f"contains(lower(topic), {literal(containing.lower())})" if containing else "true"
    query = _TREE.format(branches=places, matching=matching, order=ORDERS[order], span=max(int(span_ns), 1))
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows(source, query):
        found.setdefault(row["branch"], []).append(row)
    return {branch: Level(tuple(map(_branch, level)), level[0]["siblings"]) for branch, level in found.items()}


def _branch(row: Mapping[str, Any]) -> Branch:
    """The row at the last place that all of its topics have in common."""
    first, last = row["least"], row["greatest"]
    least = f"{row['branch']}{row['segment']}"
    shared = first[: shared_start(first, last)]
    whole = len(first) < LONGEST_BRANCH and len(last) < LONGEST_BRANCH
    if not whole or any(len(name) > len(shared) and name[len(shared)] != "/" for name in (first, last)):
        shared = shared.rpartition("/")[0]
    shared = max(shared, least, key=len)
    return Branch(f"{shared}/", shared.removeprefix(row["branch"]), row["topics"] > 1 or not whole, row)


def below(under: str) -> str:
    """The branch that an address names: its last slash may be left out."""
    return under if not under or under.endswith("/") else f"{under}/"


def topics(branch: str, span_ns: int) -> str:
    """A SELECT: a row for each topic in the place of a branch and below it, with the facts of `Branch` and `latest`."""
    return _TOPICS.format(under=_inside(branch), span=max(int(span_ns), 1))


def publishes(branch: str, kind: str = "", condition: str = "true") -> str:
    """A SELECT of the messages in the place of a branch and below it. kind: published or forwarded, "" for both.

    condition: SQL boolean over `mqtt_publishes`.
    """
    same = f"{_KIND} = {literal(kind)}" if kind else "true"
    return (
        f"select * replace ({WAY} as direction) from mqtt_publishes where {_inside(branch)} and {same} and {condition}"
    )


def publishes_over_time(source: Source, width_ns: int, branch: str = "") -> list[dict[str, Any]]:
    """t (Unix ms), kind (published, forwarded), messages."""
    return rows(source, _OVER_TIME.format(width=int(width_ns), kind=_KIND, under=_inside(branch)))


def publish_before(source: Source, message_id: str) -> dict[str, Any] | None:
    """The last message before it of the same topic and direction, re-sends passed over; to a client, of its connection.

    message_id, packet, ts_ns, apart_ns, topic, same (whether both payloads are equal, by size and CRC-32).
    """
    found = all_rows(source, _BEFORE.format(id=literal(message_id)))
    return found[0] if found else None


def _inside(branch: str) -> str:
    if not branch:
        return "true"
    return f"(topic = {literal(branch[:-1])} or starts_with(topic, {literal(branch)}))"
