"""What TCP tells of a time in which nothing was heard: sent again, closed, or confirmed and left unanswered.

In: whose silence, from when to when. Out: links about the connections of that address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.base.times import moment_text, ns_of, seconds_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.why.asking import Asking, name, row, where, who
from wirewitness.reports.base.why.model import Causes, Link, Place, Row

AGAIN, CLOSED, STOOD, SERVER_STOOD = "sent_again", "closed", "stood_still", "server_stood_still"
# Rules that find a server which answered nobody.
_STOOD_CODES = ("KAF302", "MON116")
# Loss at random hits a segment once or twice; see analyser/kafka/facts/group_stage.py.
_SENT_AGAIN = 3

_AGAIN = """
    select flow_id, direction, span, count(*) as n, epoch_ns(min(ts)) as first_ns, epoch_ns(max(ts)) as last_ns,
           arg_min(file, ts) as file, list(packet order by ts)[:6] as packets
    from expert_infos where code = 'retransmission' and {flows} and epoch_ns(ts) between {from_ns} and {to_ns}
    group by all having count(*) >= {least} order by n desc, first_ns limit 1"""
_OF_ADDRESS = "flow_id in (select flow_id from flows where client_address = {address})"


def network_links(ask: Asking, member: Mapping[str, Any], from_ns: int, to_ns: int) -> Causes:
    """What stood while a member was silent. member: a row of kafka_members."""
    side = member["idle_side"]
    again = sent_again(ask, _OF_ADDRESS.format(address=literal(member["client_address"])), from_ns, to_ns)
    if side == "network":
        if again is not None:
            return Causes((again,))
        return Causes(end="the network between it and the broker was down, as the retransmissions show")
    closed = _closed(member, from_ns, to_ns)
    if closed is not None:
        return Causes((closed,))
    if side == "process":
        by = who(member["client_id"], member["client_address"])
        what = (
            f"the TCP of {by} ACKed what it was sent meanwhile, and the program sent nothing: its process stood still"
        )
        return Causes((
            Link(STOOD, (member["exchange_id"],), what, f"the process of {by} stood still", from_ns, to_ns, (),
                 (row("kafka_members", member_id=member["member_id"], exchange_id=member["exchange_id"]),), "high",
                 "a program that is silent while its TCP ACKs was stopped, paused or starved", dict(member)),
        ))  # fmt: skip
    if again is not None:
        return Causes((again,), end="")
    return Causes(end="these packets do not show whether the process or the network hung")


def server_stood(ask: Asking, from_ns: int, to_ns: int, server: str | None = None) -> Link | None:
    """A finding that a server answered nobody in most of that time. server: that one, address and port."""
    for found in ask.findings():
        since, until = (ns_of_number(found.numbers.get(key)) for key in ("since", "until"))
        if found.code not in _STOOD_CODES or since is None or until is None or found.numbers.get("kind") == "slow":
            continue
        shared = min(until, to_ns) - max(since, from_ns)
        if shared < min(until - since, to_ns - from_ns) / 2 or server not in (None, found.numbers.get("server")):
            continue
        where_ = found.numbers.get("server")
        lasted = seconds_text(until - since)
        what = f"{name(where_)} responded to nobody for {lasted}"
        places = tuple(Place(one.get("file"), one.get("packet"), one.get("message_id"), one.get("line"))
                       for one in found.evidence[:6])  # fmt: skip
        return Link(SERVER_STOOD, (found.finding_id,), what, f"{name(where_)} stood still for {lasted}", since, until,
                    places, (row("findings", finding_id=found.finding_id),), facts={"finding": found})  # fmt: skip
    return None


def ns_of_number(text: object) -> int | None:
    """A time in the numbers of a finding as Unix ns; None where there is none."""
    try:
        return ns_of(str(text)) if text else None
    except ValueError:
        return None


def server_stood_causes(_: Asking, link: Link) -> Causes:
    """What stops a server is on its host."""
    return Causes(
        end=f"its host shows what stopped it; `wirewitness why CAPTURE {link.key[0]}` shows what it did to others"
    )


def sent_again(ask: Asking, flows: str, from_ns: int, to_ns: int, least: int = _SENT_AGAIN) -> Link | None:
    """The bytes of these flows that were sent again most often in that time. flows: an SQL condition."""
    query = _AGAIN.format(flows=flows, from_ns=int(from_ns), to_ns=int(to_ns), least=least)
    found = ask.one(query)
    if found is None:
        return None
    whose = "the client's" if found["direction"] == "client_to_server" else "the server's"
    lasted = seconds_text(found["last_ns"] - found["first_ns"])
    over = f" within {lasted}" if found["n"] > 1 else ""
    what = f"the same bytes of {whose} were sent again {count(found['n'], 'time')}{over}: nothing came through"
    condition = f"code = 'retransmission' and {where(flow_id=found['flow_id'], span=found['span'])}"
    return Link(AGAIN, (found["flow_id"], found["span"]), what, "packets did not get through", found["first_ns"],
                found["last_ns"], tuple(Place(found["file"], packet) for packet in found["packets"]),
                (Row("expert_infos", condition),), facts=dict(found))  # fmt: skip


def again_causes(_: Asking, __: Link) -> Causes:
    """Packets that vanish leave no trace of where."""
    return Causes(end="a capture at one point does not show where on the way they were lost")


def _closed(member: Mapping[str, Any], from_ns: int, to_ns: int) -> Link | None:
    """The connection of its last request that its host closed in that time."""
    at_ns = member["closed_ns"]
    if at_ns is None or member["closed_by"] != "client" or not from_ns <= at_ns <= to_ns:
        return None
    by = who(member["client_id"], member["client_address"])
    how = "reset" if member["reset_by"] == "client" else "closed"
    what = f"the host of {by} {how} its connection without a LeaveGroup, at {moment_text(at_ns)}"
    return Link(CLOSED, (member["flow_id"],), what, f"the host of {by} {how} its connection", at_ns, None, (),
                (row("kafka_members", member_id=member["member_id"], exchange_id=member["exchange_id"]),
                 row("flows", flow_id=member["flow_id"])), facts=dict(member))  # fmt: skip


def closed_causes(_: Asking, link: Link) -> Causes:
    """What ends a program is on its host."""
    return Causes(
        end="a process that ends without LeaveGroup, its host or a proxy does so: the capture cannot show which"
    )


def stood_causes(_: Asking, __: Link) -> Causes:
    """What stops a process is on its host."""
    return Causes(end="its host shows what stopped it (a pause of its runtime, SIGSTOP, no CPU)")
