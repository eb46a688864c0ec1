"""Why an exchange took as long as it did, or ended as it did. In: the id of an exchange or of one of its messages.

Out: its latency in parts, and what lies behind the larger ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.base.times import ms_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.tables.queries import IS_TIMED, literal
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.why import latency
from wirewitness.reports.base.why.asking import COMMITS_OF, Asking, accusing, finding_link, name, row, where
from wirewitness.reports.base.why.latency import Asked, Wait, split
from wirewitness.reports.base.why.model import Causes, Link, Part, Place
from wirewitness.reports.base.why.network import sent_again, server_stood
from wirewitness.reports.protocols.kafka.why.commits import refused_link
from wirewitness.reports.protocols.kafka.why.groups import rebalance_between, rebalance_link
from wirewitness.reports.protocols.kafka.why.refused import refusal_of
from wirewitness.reports.report.why.waits import asker, queue_link, responder, tcp_wait_link, tcp_waits

EXCHANGE = "exchange"
# A part that is less than this of the whole explains nothing.
_LEAST_SHARE = 0.1
# Not slower than others of its kind.
_USUAL = 3.0
_LEAST_OTHERS = 10
_FOREVER_NS = 1 << 62
_MOST_FINDINGS = 3
# Servers of these answer the requests of a connection one after the other.
_ONE_BY_ONE = ("kafka", "mongo")

_FIND = """
    select *, epoch_ns(ts) as sent_ns, epoch_ns(ts_response) as answered_ns from exchanges
    where {id} in (exchange_id, request_message_id, response_message_id) limit 1"""
_BEFORE = """
    select *, epoch_ns(ts) as sent_ns, epoch_ns(ts_response) as answered_ns from exchanges
    where {same} and epoch_ns(ts) < {sent_ns} and epoch_ns(ts_response) > {sent_ns}
        and epoch_ns(ts_response) <= {answered_ns} order by ts_response desc limit 1"""
_USUALLY = """
    select count(*) as n, median(latency_ms) as usual_ms from exchanges
    where {same} and status in ('ok', 'error') and {timed}"""
_DESIGN = {
    "Fetch": ("select max(max_wait_ms) as ms from kafka_fetch_partitions where {}", "fetch.max.wait.ms"),
    "JoinGroup": ("select max(rebalance_timeout_ms) as ms from kafka_group_events where {}", "rebalance timeout"),
}
_AWAITED = "select max(await_time_ms) as ms from mongo_commands where {}"
_TIMES = "select * from kafka_request_times where {}"
_EVENT = """
    select *, epoch_ns(ts) as sent_ns, epoch_ns(coalesce(ts_response, ts)) as at_ns from kafka_group_events
    where {own} order by error_code <> 0 desc limit 1"""
_REBALANCE = """
    select *, epoch_ns(ts) as at_ns, epoch_ns(ts_end) as end_ns, epoch_ns(ts_waited_last) as waited_last_ns
    from kafka_rebalances where {group} and epoch_ns(ts) <= {until_ns} and epoch_ns(ts_end) >= {from_ns}
    order by ts desc limit 1"""
_FLOW = "select *, epoch_ns(ts_closed) as closed_ns, epoch_ns(ts_last) as end_ns from flows where {}"


def find_exchange(ask: Asking, some_id: str) -> dict[str, Any] | None:
    """The exchange of that id, or of a message of that id."""
    return ask.one(_FIND.format(id=literal(some_id)))


def exchange_link(ask: Asking, found: Mapping[str, Any]) -> tuple[Link, str]:
    """The first link of an exchange with its parts, and a remark on what the packets tell."""
    parts, remark = _parts(ask, found)
    what = f"{name(found['operation'])} of {asker(found)} to {responder(found)} {_ended(found)}"
    places = tuple(
        Place(found["request_file"], found[packet], found[message], found["line"])
        for packet, message in (
            ("request_packet", "request_message_id"), ("response_packet", "response_message_id"),
        ) if found[message] is not None
    )  # fmt: skip
    until_ns = found["answered_ns"] if found["answered_ns"] is not None else _waited_until(ask, found)
    link = Link(EXCHANGE, (found["exchange_id"],), what, f"{name(found['operation'])} {_ended(found)}",
                found["sent_ns"], until_ns, places,
                (row("exchanges", exchange_id=found["exchange_id"]),), facts=dict(found),
                parts=tuple(parts))  # fmt: skip
    return link, remark


def _waited_until(ask: Asking, found: Mapping[str, Any]) -> int | None:
    """How long a request without response was waited for: to the end of its connection."""
    flow = ask.one(_FLOW.format(where(flow_id=found["flow_id"])))
    return flow["closed_ns"] or flow["end_ns"] if flow else None


def usual(ask: Asking, found: Mapping[str, Any]) -> tuple[str, bool]:
    """How long others of its kind take, and whether this one is like them."""
    if found["latency_ms"] is None or found["awaitable"]:
        return "", False
    same = where(operation=found["operation"], server_address=found["server_address"], protocol=found["protocol"])
    others = ask.rows(_USUALLY.format(same=same, timed=IS_TIMED))[0]
    if others["n"] < _LEAST_OTHERS or others["usual_ms"] is None:
        return "", False
    told = f"the median of {count(others['n'], 'exchange')} of that kind is {ms_text(others['usual_ms'])}"
    like = found["status"] == "ok" and found["latency_ms"] <= _USUAL * others["usual_ms"]
    return told, like and not accusing(ask, lambda one: _names(one, found))


def exchange_causes(ask: Asking, link: Link) -> Causes:
    """What lies behind its error, its missing response, or the larger of its parts; and findings that name it."""
    found = link.facts
    about = [finding_link(one) for one in accusing(ask, lambda one: _is_evidence(one, found))][:_MOST_FINDINGS]
    if found["answered_ns"] is None:
        none = _unanswered(ask, found)
        return Causes((*none.links, *about), none.end)
    links = [one for one in _errors(ask, found) if one is not None]
    whole = found["answered_ns"] - found["sent_ns"]
    ends: list[str] = []
    for part in sorted(link.parts, key=lambda one: -one.ns):
        if part.ns < whole * _LEAST_SHARE:
            break
        behind, end = _behind(ask, found, part)
        links += [one for one in behind if one is not None]
        if end and end not in ends:
            ends.append(end)
    if found["status"] == "error":  # its time is not what is asked for
        ends = [] if links else [_error_end(found)]
    return Causes((*links, *about), "; ".join(ends))


def _names(one: Finding, found: Mapping[str, Any]) -> bool:
    """Whether a finding is about this exchange, its connection, or its client and its kind of request."""
    numbers = one.numbers
    if _is_evidence(one, found):
        return True
    flows = numbers.get("flows")
    if found["flow_id"] in (numbers.get("flow_id"), *(flows if isinstance(flows, list) else ())):
        return True
    of_client = any(
        client.get("address") == found["client_address"] and client.get("client_id") in (None, found["client_id"])
        for client in one.everybody
    )
    return of_client and found["operation"] in (numbers.get("operation"), numbers.get("command"), numbers.get("api"))


def _is_evidence(one: Finding, found: Mapping[str, Any]) -> bool:
    """Whether the exchange is among the evidence of a finding."""
    own = {found["exchange_id"], found["request_message_id"], found["response_message_id"]} - {None}
    return any(item.get("message_id") in own for item in one.evidence)


def _error_end(found: Mapping[str, Any]) -> str:
    error = name(found["error_name"] or found["error_code"])
    return f"the server responded with {error}; its log says more, the capture has no more about it"


def _behind(ask: Asking, found: Mapping[str, Any], part: Part) -> tuple[list[Link | None], str]:
    """Links behind a part of the time, or why there are none."""
    sent_ns, answered_ns = found["sent_ns"], found["answered_ns"]
    if part.name == latency.BEHIND:
        queue, before = queue_link(ask, found), _before(ask, found)
        return [queue or (exchange_link(ask, before)[0] if before else None)], ""
    if part.name == latency.AGAIN:
        again = sent_again(ask, where(flow_id=found["flow_id"]), sent_ns, answered_ns, least=1)
        return [again], "" if again else "the copies are in the packets"
    if part.name in (latency.WINDOW, latency.CONFIRMATION):
        return [*map(tcp_wait_link, tcp_waits(ask, found)[:2])], ""
    if part.name == latency.DESIGN:
        waited = _waited(ask, found)
        return waited, "" if waited else "the request asks the server to wait until there is something to respond"
    if part.name in (latency.NETWORK_OUT, latency.NETWORK_BACK):
        return [], "the way is as long as that"
    if part.name in (latency.UNCLEAR, latency.UNHEARD):
        return [], "a capture at the server would show which of the two it was"
    if part.name == latency.TRANSFER:
        return [], f"the response has {found['response_bytes'] or 0:,} bytes"
    if found["direction"] == "server_to_client":
        return [], "the client's own log shows what it did meanwhile"
    stood = server_stood(ask, sent_ns, answered_ns, f"{found['server_address']}:{found['server_port']}")
    if stood or part.name == "server":
        return [stood], "" if stood else "the server's log and metrics show what it did meanwhile"
    return [], "the packets do not show whether the server or the network took that time"


def _parts(ask: Asking, found: Mapping[str, Any]) -> tuple[list[Part], str]:
    if found["answered_ns"] is None or found["sent_ns"] is None or found["request_message_id"] is None:
        return [], ""
    told = _of_log(ask, found)
    if told:
        return told, ""
    before = _before(ask, found)
    design_ns, design = _design(ask, found)
    asked = Asked(
        found["sent_ns"], max(found["answered_ns"], found["sent_ns"]),
        "client" if found["direction"] == "server_to_client" else "server",
        before["answered_ns"] if before else None, design_ns, design,
        tuple(Wait(one["kind"], one["first_ns"], one["last_ns"]) for one in tcp_waits(ask, found)),
    )  # fmt: skip
    if ask.packets is None:
        return split(asked, None), "the packets are not at hand, so network and server time are not separated"
    around = ask.packets(found)
    return split(asked, around.seen), around.remark


def _of_log(ask: Asking, found: Mapping[str, Any]) -> list[Part]:
    """Of a line of a broker's request log: what the broker measured."""
    line = ask.one(_TIMES.format(where(exchange_id=found["exchange_id"])))
    if line is None:
        return []
    names = {
        "request_queue_ms": "server, in its queue", "local_ms": "server, own work", "remote_ms": "server, for others",
        "throttle_ms": "quota", "response_queue_ms": "server, response in its queue", "send_ms": "server, sending",
    }  # fmt: skip
    whole = found["answered_ns"] - found["sent_ns"]
    parts: list[Part] = []
    for column, called in names.items():
        ns = min(round((line[column] or 0) * 1e6), whole - sum(part.ns for part in parts))
        if ns > 0:
            parts.append(Part(called, ns, f"{column} of the broker's own log"))
    left = whole - sum(part.ns for part in parts)
    return [*parts, Part("server", left, "what its log does not share out")] if left > 0 else parts


def _design(ask: Asking, found: Mapping[str, Any]) -> tuple[int | None, str]:
    """How long the request lets the server wait, and the name of that."""
    if not found["awaitable"] or found["status"] == "error":  # a refusal waits for nothing
        return None, ""
    own = where(exchange_id=found["exchange_id"])
    query, setting = _DESIGN.get(found["operation"], (_AWAITED, "maxAwaitTimeMS"))
    limit = ask.rows(query.format(own))[0]["ms"]
    if limit is None:
        return _FOREVER_NS, "the request is a long poll"
    return int(limit) * 1_000_000, f"the request lets the server wait {ms_text(limit)} ({setting})"


def _waited(ask: Asking, found: Mapping[str, Any]) -> list[Link | None]:
    """Of JoinGroup and SyncGroup: the rebalance that they waited for."""
    event = ask.one(_EVENT.format(own=where(exchange_id=found["exchange_id"])))
    if event is None:
        return []
    group = where(cluster_id=event["cluster_id"], group_id=event["group_id"])
    one = ask.one(_REBALANCE.format(group=group, until_ns=found["answered_ns"], from_ns=found["sent_ns"]))
    return [rebalance_link(one)] if one else []


def _errors(ask: Asking, found: Mapping[str, Any]) -> list[Link | None]:
    """What an answer's error is about."""
    if found["status"] != "error":
        return []
    own = where(exchange_id=found["exchange_id"])
    commit = ask.one(f"{COMMITS_OF} where {own} and error_code <> 0 order by topic, partition limit 1")
    if commit is not None:
        return [refused_link(commit, 1)]
    event = ask.one(_EVENT.format(own=own))
    return [rebalance_between(ask, event) if event is not None and event["error_code"] else refusal_of(ask, found)]


def _unanswered(ask: Asking, found: Mapping[str, Any]) -> Causes:
    """Of a request without answer: who closed the connection, or that the capture ended."""
    if found["status"] in ("one_way", "orphan"):
        return Causes(end="it has no response by design" if found["status"] == "one_way" else "its request is not here")
    flow = ask.one(_FLOW.format(where(flow_id=found["flow_id"])))
    if flow is None or flow["closed_ns"] is None:
        return Causes(end="the capture ends before its response, and its connection is open")
    if flow["gap_bytes"]:
        return Causes(end="bytes of its connection are missing from the capture, the response perhaps among them")
    by = asker(found) if flow["closed_by"] == "client" else responder(found)
    what = f"{by} {'reset' if flow['reset_by'] == flow['closed_by'] else 'closed'} the connection before the response"
    closed = Link("ended", (found["flow_id"],), what, what, flow["closed_ns"], None, (),
                  (row("flows", flow_id=found["flow_id"]),), facts=dict(flow))  # fmt: skip
    return Causes((closed,))


def ended_causes(_: Asking, __: Link) -> Causes:
    """Why somebody closes is on their host."""
    return Causes(end="the capture cannot show why it did not wait: its log or its time limits can")


def _before(ask: Asking, found: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request before it on its connection whose answer came after this one was sent."""
    if found["protocol"] not in _ONE_BY_ONE:
        return None
    same = where(flow_id=found["flow_id"], direction=found["direction"])
    return ask.one(_BEFORE.format(same=same, sent_ns=found["sent_ns"], answered_ns=found["answered_ns"]))


def _ended(found: Mapping[str, Any]) -> str:
    if found["answered_ns"] is None:
        return f"has no response ({found['status'] or 'not known'})"
    took = ms_text((found["answered_ns"] - found["sent_ns"]) / 1e6)
    error = found["error_name"] or found["error_code"]
    return f"took {took} and ended with {name(error)}" if found["status"] == "error" else f"took {took}"
