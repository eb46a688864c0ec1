"""What an exchange waited for on its connection: requests before it, full windows, delayed ACKs.

In: a row of exchanges. Out: links, and the names of who asks and who responds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.base.times import ms_text
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.why.asking import Asking, name, place, row, where, who
from wirewitness.reports.base.why.model import Causes, Link, Place, Row

TCP_WAIT, QUEUE = "tcp_wait", "queue"
# RFC 1122, 4.2.3.2: an ACK is delayed by less than 0.5 s; Linux waits 40 ms at least. What its ACK alone held up goes
# on at once when it comes.
_DELAYED_ACK_MS, _AT_ONCE_MS = (40, 500), 5

# Those before it on its connection that had no response when it was sent, and how far apart the responses came.
_AHEAD = """
    with ahead as (
        select exchange_id, operation, request_file, request_packet, line, epoch_ns(ts) as sent_ns,
               epoch_ns(ts_response) as answered_ns
        from exchanges
        where {same} and epoch_ns(ts) < {sent_ns} and epoch_ns(ts_response) > {sent_ns}
            and epoch_ns(ts_response) <= {answered_ns}),
    own as (select *, answered_ns - coalesce(lag(answered_ns) over (order by answered_ns), {sent_ns}) as own_ns
            from ahead)
    select count(*) as n, median(own_ns) as own_ns, min(sent_ns) as first_ns, max(answered_ns) as last_ns,
           mode(operation) as operation, arg_max(exchange_id, own_ns) as exchange_id,
           arg_max(request_file, own_ns) as request_file, arg_max(request_packet, own_ns) as request_packet,
           arg_max(line, own_ns) as line from own"""
_WAITS = """
    select *, epoch_ns(ts) as first_ns, epoch_ns(ts_last) as last_ns from tcp_waits
    where {flow} and direction <> {direction} and epoch_ns(ts_last) >= {sent_ns} and epoch_ns(ts) <= {answered_ns}
        and (kind <> 'delayed_ack' or wait_ms between {least_ms} and {most_ms} and answer_ms <= {at_once_ms})
    order by ts limit 100"""


def queue_link(ask: Asking, found: Mapping[str, Any]) -> Link | None:
    """The requests before it on its connection, where they are several: how fast the server went through them."""
    same = where(flow_id=found["flow_id"], direction=found["direction"])
    ahead = ask.rows(_AHEAD.format(same=same, sent_ns=found["sent_ns"], answered_ns=found["answered_ns"]))[0]
    if ahead["n"] < 2:
        return None
    what = (
        f"{ahead['n']:,} requests before it on its connection had no response yet; {responder(found)} responded to one "
        f"after the other, {ms_text(ahead['own_ns'] / 1e6)} apart (median; most are {name(ahead['operation'])})"
    )
    condition = f"{same} and epoch_ns(ts) < {found['sent_ns']} and epoch_ns(ts_response) > {found['sent_ns']}"
    return Link(QUEUE, (found["exchange_id"],), what, f"{ahead['n']:,} requests before it", ahead["first_ns"],
                ahead["last_ns"], (place(ahead),), (Row("exchanges", condition),), facts=dict(ahead))  # fmt: skip


def queue_causes(_: Asking, link: Link) -> Causes:
    """What each of them took is told by `why` of one."""
    return Causes(end=f"`wirewitness why CAPTURE {link.facts['exchange_id']}` shows where the longest of them spent it")


def tcp_waits(ask: Asking, found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Waits of the response's bytes."""
    return ask.rows(
        _WAITS.format(flow=where(flow_id=found["flow_id"]), direction=literal(found["direction"]),
                      sent_ns=found["sent_ns"], answered_ns=found["answered_ns"], least_ms=_DELAYED_ACK_MS[0],
                      most_ms=_DELAYED_ACK_MS[1], at_once_ms=_AT_ONCE_MS)
    )  # fmt: skip


def tcp_wait_link(found: Mapping[str, Any]) -> Link:
    """A row of tcp_waits."""
    if found["kind"] == "full_window":
        what = f"the receiver's window was full for {ms_text(found['wait_ms'])}: it read more slowly than was sent"
    else:
        what = f"a small piece waited {ms_text(found['wait_ms'])} for the ACK of the one before (Nagle's rule)"
    return Link(TCP_WAIT, (found["file"], found["packet_first"], found["kind"]), what, what, found["first_ns"],
                found["last_ns"], (Place(found["file"], found["packet_first"]),),
                (row("tcp_waits", file=found["file"], packet_first=found["packet_first"], kind=found["kind"]),),
                facts=dict(found))  # fmt: skip


def tcp_wait_causes(_: Asking, link: Link) -> Causes:
    """Who reads slowly, or who writes in pieces, is a program."""
    if link.facts["kind"] == "full_window":
        return Causes(end="the receiver's host shows why its program reads so slowly")
    return Causes(end="the program that sends writes in small pieces; TCP_NODELAY or one write ends that")


def asker(found: Mapping[str, Any]) -> str:
    """Who sent the request."""
    if found["direction"] == "server_to_client":
        return f"{name(found['server_address'])}:{found['server_port']}"
    return who(found["client_id"], found["client_address"])


def responder(found: Mapping[str, Any]) -> str:
    """Who was to respond."""
    if found["direction"] == "server_to_client":
        return who(found["client_id"], found["client_address"])
    return f"{name(found['server_address'])}:{found['server_port']}"
