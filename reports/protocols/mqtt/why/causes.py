"""Why a message of MQTT did not reach a subscriber. In: client and topic, or the id of a publish.

Out: what became of it, back to the subscriber that was away, the session that was taken over or gone, or the QoS that
keeps nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.times import moment_text, ms_text, seconds_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.mqtt.facts.delivery_sql import WAIT_MS
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.why.asking import Asking, by_id, name, row, where, who
from wirewitness.reports.base.why.model import Causes, Link, Place
from wirewitness.reports.base.why.network import sent_again

DELIVERY, AWAY, TAKEN_OVER, SILENT, SESSION = "delivery", "subscriber_away", "taken_over", "keep_alive", "session_gone"
HELD_UP, REFUSED, TOO_LARGE = "held_up", "refused_message", "too_large"
MOST_DELIVERIES = 5
# A connection that another one of the same client id ends is closed within this time of its CONNECT.
_AT_ONCE_NS = 2_000_000_000
_TAKEN = 0x8E

# Subscribers of one publish have its time: without more to go by any of them would be shown.
DELIVERY_ROWS = """
    select *, epoch_ns(ts) as at_ns, coalesce(epoch_ns(ts_delivered), (select max(epoch_ns(ts_last)) from captures))
           as until_ns, count(*) over () as n
    from mqtt_deliveries
    where {which} order by status = 'delivered', ts desc, message_id desc, subscriber, topic_filter,
        delivered_message_id, status, waited_ms limit {most}"""
_CONNECTION = """
    select *, epoch_ns(ts) as at_ns, epoch_ns(ts_closed) as closed_ns, epoch_ns(ts_last_from_client) as last_ns,
           epoch_ns(client_silence_from) as silent_ns
    from mqtt_connections where {which} order by ts desc limit 1"""
_ABSENCE = """
    select *, epoch_ns(ts) as at_ns, epoch_ns(ts_back) as back_ns from mqtt_offline_periods
    where {which} order by ts desc limit 1"""
_PUBLISH = "select *, epoch_ns(ts) as at_ns from mqtt_publishes where {which} order by ts desc limit 1"
_HELD = {
    "zero_window": "its TCP advertised a zero window",
    "unfinished_qos2": "a QoS 2 message before it is not finished, and others wait for it",
    "unacknowledged": "it acknowledges nothing more, and has as many messages open as may be",
    "slow": "it takes a second or more for each acknowledgement",
}


def deliveries_of(ask: Asking, message_id: str) -> list[dict[str, Any]]:
    """Whom a publish had to reach, those that it did not reach first."""
    return ask.rows(DELIVERY_ROWS.format(which=where(message_id=message_id), most=MOST_DELIVERIES))


def delivery_link(found: Mapping[str, Any]) -> Link:
    """A row of mqtt_deliveries."""
    to = who(found["subscriber_client_id"], found["subscriber_address"])
    told = {
        "delivered": f"reached {to}" + (f" {ms_text(found['latency_ms'])} later" if found["latency_ms"] else ""),
        "sent": f"was sent to {to}, which did not acknowledge it",
        "missing": f"did not reach {to}" + (f" within {ms_text(found['waited_ms'])}" if found["waited_ms"] else ""),
        "left": f"did not reach {to}, which was gone before", "lost": f"is lost for {to}: its session was gone",
        "expired": f"expired before {to} could have it", "refused": f"was refused by the server, so {to} got nothing",
        "not_kept": f"was not kept for {to}, which was away: its QoS, or that of the subscription, is 0",
        "unknown": f"is not seen to reach {to}, and the capture does not show more",
    }  # fmt: skip
    what = (
        f"the message of {who(found['client_id'], found['client_address'])} on {name(found['topic'])} "
        f"(QoS {found['qos']}, {moment_text(found['at_ns'])}) {told.get(found['status'], name(found['status']))}"
    )
    return Link(DELIVERY, (found["message_id"], found["subscriber"], found["topic_filter"]), what, what,
                found["at_ns"], found["until_ns"],
                (Place(found["file"], found["packet"], found["message_id"]),),
                (row("mqtt_deliveries", message_id=found["message_id"], subscriber=found["subscriber"]),),
                facts=dict(found))  # fmt: skip


def delivery_causes(ask: Asking, link: Link) -> Causes:
    """Why it ended so."""
    found = link.facts
    if found["status"] == "delivered":
        return Causes(end="the server forwarded it")
    if found["status"] in ("sent", "unknown", "missing") and (again := _again(ask, found)) is not None:
        return Causes((again,))
    if found["status"] == "sent":
        ended = _away(ask, found)
        own_log = "the server forwarded it; the client's own log shows what it did with it"
        return Causes(() if ended is None else (ended,), "" if ended else own_log)
    if found["status"] == "refused":
        return _refused(ask, found)
    if found["status"] in ("lost", "expired"):
        gone = _session(ask, found)
        if gone is not None:
            return Causes((gone,))
    if found["status"] in ("left", "lost", "not_kept"):
        away = _away(ask, found)
        if away is not None:
            return Causes((away,))
    if found["cause"] == "packet_too_large":
        return _too_large(ask, found)
    held = found["blocked_by"]
    if held in _HELD:
        what = f"{who(found['subscriber_client_id'], found['subscriber_address'])} held it up: {_HELD[held]}"
        return Causes((
            Link(HELD_UP, (found["subscriber_flow_id"], held), what, what, None, None, (),
                 (row("mqtt_deliveries", message_id=found["message_id"], subscriber=found["subscriber"]),),
                 facts=dict(found)),
        ))  # fmt: skip
    if found["status"] == "unknown":
        return Causes(end=_not_shown(ask, found))
    return Causes(end=_TESTED)


# What `mqtt_deliveries` looks for before it leaves a message without a cause, and `_again`.
_TESTED = (
    "not the cause, as these packets show: size limits, message expiry, a window that was shut, messages left "
    "unacknowledged for 10 s, packets sent again; the server's log and its settings show more"
)


def _again(ask: Asking, found: Mapping[str, Any]) -> Link | None:
    """Bytes of the server to the subscriber that were sent again and again from then on."""
    flow = f"{where(flow_id=found['subscriber_flow_id'])} and direction = 'server_to_client'"
    waited_ns = round((found["waited_ms"] or 0) * 1e6)
    return sent_again(ask, flow, found["at_ns"], max(found["until_ns"] or 0, found["at_ns"] + waited_ns))


def _not_shown(ask: Asking, found: Mapping[str, Any]) -> str:
    """Why nobody knows whether a message came."""
    there = ask.one(_CONNECTION.format(which=where(flow_id=found["subscriber_flow_id"])))
    if there is not None and there["gap_bytes"]:
        return "bytes of the subscriber's connection are missing from the capture, the message perhaps among them"
    if found["waited_ms"] is not None and found["waited_ms"] < WAIT_MS:
        return f"the capture, or its connection, goes on for {ms_text(found['waited_ms'])} only after it"
    return "the server's acknowledgement to the publisher, or all of the payload, is not in this capture"


def _too_large(ask: Asking, found: Mapping[str, Any]) -> Causes:
    to = ask.one(_CONNECTION.format(which=where(flow_id=found["subscriber_flow_id"])))
    publish = ask.one(_PUBLISH.format(which=where(message_id=found["message_id"])))
    if to is None or publish is None:
        return Causes(end="it is larger than the subscriber takes")
    what = (
        f"{who(to['client_id'], to['client_address'])} said in CONNECT that it takes "
        f"{to['maximum_packet_size_bytes']:,} bytes at most; the message has {publish['length_bytes']:,}"
    )
    return Causes((
        Link(TOO_LARGE, (to["flow_id"],), what, what, to["at_ns"], None, (Place(to["file"], to["packet"]),),
             (row("mqtt_connections", flow_id=to["flow_id"]), row("mqtt_publishes", message_id=found["message_id"]))),
    ))  # fmt: skip


def too_large_causes(_: Asking, __: Link) -> Causes:
    """MQTT 5.0, 3.1.2.11.4: the server must not send it, and says nothing of it."""
    return Causes(end="the server drops it without a word, as MQTT 5.0 (3.1.2.11.4) has it")


def held_up_causes(_: Asking, link: Link) -> Causes:
    """What a subscriber does is its own."""
    opened = link.facts["open_messages"]
    more = f": {count(opened, 'message')} {'was' if opened == 1 else 'were'} open" if opened else ""
    return Causes(end=f"its own log shows what kept it{more}")


def _refused(ask: Asking, found: Mapping[str, Any]) -> Causes:
    publish = ask.one(_PUBLISH.format(which=where(message_id=found["message_id"])))
    if publish is None or publish["reason_code"] is None:
        return Causes(end="the server said no more")
    reason = publish["reason_name"] or f"0x{publish['reason_code']:02X}"
    what = f"the server responded {name(reason)} to {who(publish['client_id'], publish['client_address'])}"
    return Causes((
        Link(REFUSED, (found["message_id"],), what, what, publish["at_ns"], None, (by_id(found["message_id"]),),
             (row("mqtt_publishes", message_id=found["message_id"]),)),
    ))  # fmt: skip


def refused_causes(_: Asking, __: Link) -> Causes:
    """Who may what is the server's affair."""
    return Causes(end="the server's settings and its log show why")


def _session(ask: Asking, found: Mapping[str, Any]) -> Link | None:
    """The absence in which its session ended, or the message expired."""
    which = (
        f"{where(client_id=found['subscriber_client_id'])} and epoch_ns(ts) <= {found['at_ns']} "
        f"and epoch_ns(ts_back) >= {found['at_ns']}"
    )
    gone = ask.one(_ABSENCE.format(which=which))
    if gone is None:
        return None
    by = who(gone["client_id"], gone["client_address"])
    lasted = seconds_text(gone["back_ns"] - gone["at_ns"])
    if gone["session_present"]:
        what = f"{by} was away for {lasted}; {count(gone['expired'] or 0, 'message')} expired in its session meanwhile"
    elif gone["next_clean_start"]:
        what = f"{by} was away for {lasted} and asked for a clean session when it came back"
    elif gone["clean_start"]:
        what = f"{by} was away for {lasted}; its session was a clean one and ended with its connection"
    else:
        what = f"{by} was away for {lasted}, and the server had no session of it any more"
    return Link(SESSION, (gone["flow_id"], gone["next_flow_id"]), what, what, gone["at_ns"], gone["back_ns"],
                (Place(gone["file"], gone["packet"]),),
                (row("mqtt_offline_periods", flow_id=gone["flow_id"], next_flow_id=gone["next_flow_id"]),),
                facts={**gone, "subscriber_flow_id": gone["flow_id"]})  # fmt: skip


def session_causes(ask: Asking, link: Link) -> Causes:
    """How its connection before ended."""
    away = _away(ask, link.facts)
    return Causes((away,)) if away else Causes(end="how it went is not in this capture")


def _away(ask: Asking, found: Mapping[str, Any]) -> Link | None:
    """How the subscriber's connection ended."""
    gone = ask.one(_CONNECTION.format(which=where(flow_id=found["subscriber_flow_id"])))
    if gone is None or (gone["closed_ns"] is None and gone["disconnected_by"] is None):
        return None
    by = who(gone["client_id"], gone["client_address"])
    ended = gone["closed_ns"] or gone["at_ns"]
    whose = by if (gone["disconnected_by"] or gone["closed_by"]) == "client" else "the server"
    how = "said DISCONNECT" if gone["disconnected_by"] else "closed the connection without DISCONNECT"
    reason = gone["disconnect_reason_name"]
    what = f"{whose} {how}" + (f" ({name(reason)})" if reason else "") + f" at {moment_text(ended)}"
    if whose != by:
        what += f" to {by}"
    return Link(AWAY, (gone["flow_id"],), what, what, ended, None,
                (Place(gone["file"], gone["disconnect_packet"] or gone["last_client_packet"]),),
                (row("mqtt_connections", flow_id=gone["flow_id"]),), facts=dict(gone))  # fmt: skip


def end_of(ask: Asking, flow_id: str) -> Link | None:
    """How a client's connection ended."""
    return _away(ask, {"subscriber_flow_id": flow_id})


def away_causes(ask: Asking, link: Link) -> Causes:
    """A client id that somebody else took, a keep-alive that was missed, or the client itself."""
    gone = link.facts
    ended = gone["closed_ns"] or link.at_ns or gone["at_ns"]
    taker = ask.one(
        _CONNECTION.format(
            which=f"{where(client_id=gone['client_id'])} and flow_id <> {literal(gone['flow_id'])} and error_code = 0 "
            f"and epoch_ns(ts) between {ended - _AT_ONCE_NS} and {ended} and epoch_ns(ts) > {gone['at_ns']}"
        )
    )
    if taker is not None and (gone["closed_by"] == "server" or gone["disconnect_reason_code"] == _TAKEN):
        other = who(taker["client_id"], taker["client_address"])
        what = (
            f"{other} connected with the same client id, from port {taker['client_port']}: the server ends the old one"
        )
        return Causes((
            Link(TAKEN_OVER, (taker["flow_id"],), what, f"{other} took over its client id", taker["at_ns"], None,
                 (Place(taker["file"], taker["packet"]),), (row("mqtt_connections", flow_id=taker["flow_id"]),),
                 facts=dict(taker)),
        ))  # fmt: skip
    keep_s = gone["server_keep_alive_s"] or gone["keep_alive_s"]
    silent_ns = None if gone["last_ns"] is None else ended - gone["last_ns"]
    if gone["closed_by"] == "server" and keep_s and silent_ns is not None and silent_ns >= 1.4 * keep_s * 1e9:
        by = who(gone["client_id"], gone["client_address"])
        what = f"{by} sent nothing for {seconds_text(silent_ns)}, with a keep-alive of {keep_s} s"
        return Causes((
            Link(SILENT, (gone["flow_id"],), what, f"{by} missed its keep-alive", gone["last_ns"], ended,
                 (Place(gone["file"], gone["last_client_packet"]),),
                 (row("mqtt_connections", flow_id=gone["flow_id"]),), facts=dict(gone)),
        ))  # fmt: skip
    if (gone["disconnected_by"] or gone["closed_by"]) == "client":
        if gone["disconnected_by"] == "client":
            return Causes(end="its program ended the connection in order; its own log shows why")
        return Causes(end="its program, its host or a proxy closed it: the capture cannot show which")
    return Causes(end="the server's log shows why it ended it")


def taken_over_causes(ask: Asking, link: Link) -> Causes:
    """Whether both live at another place."""
    return Causes(end="settings show who else uses that client id; the same program may have come back, too")


def silent_causes(_: Asking, __: Link) -> Causes:
    """What stops a client is on its host."""
    return Causes(end="these packets do not show whether the client or the network hung")


def names_near(ask: Asking) -> Sequence[str]:
    """`CLIENT TOPIC` of what was delivered or not, some of them."""
    rows = ask.rows(
        "select distinct subscriber_client_id as client, topic from mqtt_deliveries "
        "where subscriber_client_id is not null order by client, topic limit 200"
    )
    return [f"{one['client']} {one['topic']}" for one in rows]
