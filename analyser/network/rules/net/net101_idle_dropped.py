"""NET101 idle-dropped: something between client and server forgets connections, idle ones above all.

Finds
    Connections that were silent for a while and are dead when they are used again: a firewall, a NAT gateway or a load
    balancer dropped them, and neither side was notified. And connections whose client sends into nothing from one
    moment on, in the middle of its work.

Why it matters
    The next request waits for TCP to give up or for a request timeout, often tens of seconds, each time after a pause.
    Both ends look healthy, and new connections work at once.

How it decides
    After at least 15 s without a packet of the other side (idle_s): bytes are sent four times or more (sent_least) and
    never confirmed, although the two hosts go on to talk over another connection; or a reset comes whose hop limit
    (TTL) lies outside those of all that its sender sent (first, lowest and last packet, on all connections of the two,
    at least 3 packets, packets_least), and whose IP id does not run on from its sender's last one: somebody between
    sent it. Of a reset to both sides each is looked at.
    Where the two have no other connection, the server must have answered clients at other addresses within the second
    of three tries in vain of the client (confidence medium): its host was on the network then. A pause that the
    connection had survived before, nine tenths as long, is no timeout: then nothing is said.
    Without such a pause: what the client sends is sent six times or more (busy_least) and never confirmed, and the
    server answered clients at other addresses within the second of three of these tries, or sent on the connection a
    second later and more (confidence medium).
    Idle is from the last packet of the other side on; the drop lies between that and the first try in vain. Evidence
    are the packets that were never confirmed, the requests among them that have no answer, or the reset.

False alarms
    A host that was off the network for a while and came back under the same address. A server whose packets take
    another way than all before just when it resets. One of several servers behind a load balancer that died, while
    others answer in its name. Where only one direction was captured nothing is said.

What it cannot tell
    Which device it was. A capture on the server's side of the device does not hold what the client sent in vain.
    Whether the way of a client that has one connection alone broke just in its pause: look at its other pauses.

References
    RFC 6298 (when TCP sends again); RFC 5382, 2.5 (NAT: established idle timeout 2 h 4 min);
    AWS Network Load Balancer 350 s, Azure 4 min; connections.max.idle.ms (Kafka clients: 9 min), tcp_keepalive_time,
    maxIdleTimeMS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.addresses import client_endpoint_text, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, clock_text, seconds_text, time_text
from wirewitness.analyser.base.titles import who_title
from wirewitness.analyser.base.words import count, names_text, printable
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.flow_rows import MAX_NAME, MOST_NAMED, client_names, named_by
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.network.rules.net.answered_clients import EXCHANGES, WITNESSES, Answers

_OTHER = {"client": "server", "server": "client"}
_DIRECTIONS = {"client": "client_to_server", "server": "server_to_client"}
_PAIR = ("client_address", "server_address")
# Kinds that rest on what the server answered to others.
_OF_THE_CLIENT = ("alone", "busy")

# What was on its way already comes before.
_LATER_NS = NS_PER_S
# IP ids of a sender run on: one that is at most so far above the last one is its own.
_NEXT_IDS = 64
_KEPT_ALIVE = "have connections kept alive (TCP keep-alive)"
# What closes or uses an idle connection in time.
_BEFORE_IT = {
    "kafka": "have connections closed (connections.max.idle.ms) or kept alive (TCP keep-alive)",
    "mqtt": "have the client ping more often (a shorter keep alive, which must be below that timeout)",
    "mongo": "have connections closed (maxIdleTimeMS) or kept alive (TCP keep-alive, tcp_keepalive_time)",
}


class _Dropped(NamedTuple):
    """A connection that was dead after a pause. sender: whose bytes, or reset, showed it.

    kind: unheard, alone (likewise; the two have no other one), busy (without a pause before) or reset.
    heard_ns: the last packet of the other side (of a reset: of its sender). marks: remarks on what was sent in vain, or
    on the reset. waiting: requests on it without an answer.
    """

    flow: Row
    kind: str
    sender: str
    heard_ns: int
    at_ns: int
    sends: int = 0
    marks: Sequence[Row] = ()
    waiting: Sequence[Row] = ()

    @property
    def idle_ns(self) -> int:
        return self.at_ns - self.heard_ns


class _Sent(NamedTuple):
    """What one side sent on all connections of two hosts: its hop limits, least and greatest, and how many packets.

    heard_ns: the last packet of all.
    """

    ttls: tuple[int, int] | None
    packets: int
    heard_ns: int


def detect(
    frames: Frames, *, idle_s: float = 15.0, sent_least: int = 4, packets_least: int = 3, busy_least: int = 6
) -> Iterator[Finding]:
    """At most one finding for each client and server."""
    marks, exchanges = _by(rows_of(frames["expert_infos"]), "flow_id"), rows_of(frames["exchanges"])
    waiting, names = (
        _by([row for row in exchanges if row["status"] == "unanswered"], "flow_id"),
        client_names(exchanges),
    )
    answers = Answers(exchanges)
    for flows in _by(rows_of(frames["flows"]), *_PAIR).values():
        sent = {side: _sent(flows, side) for side in _OTHER}
        dead = [
            _proven(one, marks.get(one.flow["flow_id"], ()), waiting.get(one.flow["flow_id"], ()))
            for flow in flows
            for one in (*_reset(flow, sent, packets_least), *_unheard(flow, sent, sent_least))
        ]
        idle = [one for one in dead if one.idle_ns >= idle_s * NS_PER_S]
        dropped = [one for one in idle if one.kind != "alone" or _is_cleared(one, answers)]
        dropped = dropped or [
            one._replace(kind="busy")
            for one in dead
            if one.idle_ns < idle_s * NS_PER_S and one.sender == "client" and one.sends >= busy_least
            if _talks_on(one) or _is_witnessed(one, answers)
        ]
        if dropped:
            yield _finding(dropped, names)


def _is_cleared(one: _Dropped, answers: Answers) -> bool:
    """Did the server answer others while this one tried in vain, after a pause that was too long for the first time?"""
    return _is_witnessed(one, answers) and not answers.survived(one.flow, one.idle_ns)


def _talks_on(one: _Dropped) -> bool:
    """Did the server send on it later, and confirmed nothing of that?"""
    return bool(one.flow["ts_last_from_server"] - one.at_ns >= _LATER_NS)


def _is_witnessed(one: _Dropped, answers: Answers) -> bool:
    """Did the server answer others while this one tried in vain?"""
    return answers.witnesses(one.flow, [row["ts"] for row in one.marks]) >= WITNESSES


def _by(rows: Sequence[Row], *columns: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[columns[0]] if len(columns) == 1 else tuple(row[name] for name in columns), []).append(row)
    return found


def _proven(one: _Dropped, marks: Sequence[Row], waiting: Sequence[Row]) -> _Dropped:
    """With what shows it, among the remarks on its connection and the requests there without an answer."""
    if one.kind == "reset":
        shown = [row for row in marks if row["code"] == "reset"]
    else:
        way = _DIRECTIONS[one.sender]
        shown = [
            row for row in marks if row["code"] != "reset" and row["direction"] == way and (row["ts"] or 0) >= one.at_ns
        ]
    return one._replace(marks=shown, waiting=waiting)


def _sent(flows: Sequence[Row], sender: str) -> _Sent:
    ttls = [ttl for one in flows for ttl in _own_ttls(one, sender) if ttl is not None]
    packets = sum(one[f"{sender}_packets"] or 0 for one in flows)
    heard = max(one[f"ts_last_from_{sender}"] or 0 for one in flows)
    return _Sent((min(ttls), max(ttls)) if ttls else None, packets, heard)


def _reset(flow: Row, sent: Mapping[str, _Sent], packets_least: int) -> Iterator[_Dropped]:
    """The first reset in another's name, after a pause of the one in whose name it is."""
    for sender in dict.fromkeys((flow["reset_by"], *_OTHER)):
        heard, closed = flow.get(f"ts_last_from_{sender}"), flow["ts_closed"]
        if heard is not None and closed is not None and _is_others(flow, sent[sender], sender, packets_least):
            yield _Dropped(flow, "reset", sender, heard, closed)
            return


def _is_others(flow: Row, sent: _Sent, sender: str, packets_least: int) -> bool:
    """Does a reset come from nearer or further than all that its sender sent, with an IP id that is not its next?"""
    reset, step = flow.get(f"{sender}_reset_ttl"), flow.get(f"{sender}_reset_step")
    if reset is None or sent.ttls is None or sent.ttls[0] <= reset <= sent.ttls[1]:
        return False
    return not (step is not None and 0 < step <= _NEXT_IDS) and sent.packets >= packets_least


def _own_ttls(flow: Row, sender: str) -> tuple[int | None, ...]:
    return flow[f"{sender}_ttl"], flow[f"{sender}_ttl_lowest"], flow[f"{sender}_ttl_last"]


def _unheard(flow: Row, sent: Mapping[str, _Sent], sent_least: int) -> Iterator[_Dropped]:
    """Bytes that are sent again and again and never confirmed: while both hosts talk elsewhere, or of the client."""
    for sender, other in _OTHER.items():
        heard, since = flow[f"ts_last_from_{other}"], flow[f"ts_unheard_to_{other}"]
        sends = flow[f"unheard_sends_to_{other}"]
        if heard is None or since is None or sends < sent_least:
            continue
        if heard > since:
            if sender == "client":
                yield _Dropped(flow, "busy", sender, since, since, sends)
        elif sent[other].heard_ns > since:  # on another connection
            yield _Dropped(flow, "unheard", sender, heard, since, sends)
        elif sender == "client":
            yield _Dropped(flow, "alone", sender, heard, since, sends)


def _finding(dropped: Sequence[_Dropped], names: Mapping[str, str]) -> Finding:
    worst = max(dropped, key=lambda one: (one.idle_ns, one.flow["flow_id"]))
    flow = worst.flow
    server = server_text(flow)
    own, name = client_endpoint_text(flow), names.get(flow["flow_id"])
    who = f" of {printable(name, MAX_NAME)}" if name else ""
    at = clock_text(worst.at_ns)
    if worst.kind == "reset":
        how = (
            f"A reset came at {at} in the name of the {worst.sender} with hop limit "
            f"{flow[f'{worst.sender}_reset_ttl']}, where its own packets have {_ttls_text(flow, worst.sender)}: "
            "something between the two sent it"
        )
    else:
        how = (
            f"What the {worst.sender} sent at {at} was sent {worst.sends} times and never ACKed, while {_beside(worst)}"
        )
    more = f" {count(len(dropped), 'connection')} in total." if len(dropped) > 1 else ""
    return RULE.finding(
        confidence="medium" if all(one.kind in _OF_THE_CLIENT for one in dropped) else "high",
        subject={"client": flow["client_address"], "server": flow["server_address"]},
        title=f"{_title(worst)}: {who_title(name, flow['client_address'])} to {server}",
        sentence=(
            f"The connection {own}{who} to {server} ({flow['protocol'] or 'unknown protocol'}) {_what(worst)}. {how}."
            f"{_left(worst)}{more}"
        ),
        next_step=(
            "Find the firewall, NAT or load balancer between the two and raise its idle timeout above that of client "
            f"and server, or {_BEFORE_IT.get(flow['protocol'], _KEPT_ALIVE)} before it."
            + (" If no pause of this client ends well, the way itself is broken." if worst.kind == "alone" else "")
            if worst.kind != "busy"
            else "Look at what lies between the two: a firewall or NAT that was reloaded or lost its state, rules that "
            "were changed at that time, a link that broke."
        ),
        proof=_proof(dropped),
        numbers={
            "address": flow["client_address"],
            "server": server,
            "where": server,
            "protocol": flow["protocol"],
            "kind": worst.kind,
            "connections": len(dropped),
            "idle_since": time_text(worst.heard_ns),
            "found_dead": time_text(worst.at_ns),
            "requests_unanswered": sum(len(one.waiting) for one in dropped),
            "requests_refused": sum(len(one.waiting) for one in dropped),
            "left_behind": len(dropped),
            "stood_still_ms": round(sum(_tried_ms(one) for one in dropped), 3),
            "idle_s": [round(one.idle_ns / NS_PER_S, 1) for one in dropped[:MOST_NAMED]],
            "flows": [one.flow["flow_id"] for one in dropped[:MOST_NAMED]],
            "clients": [
                {"address": flow["client_address"], "client_id": one}
                for one in dict.fromkeys([name, *(names.get(one.flow["flow_id"]) for one in dropped)])
            ][:MOST_NAMED],
        },
    )


def _beside(one: _Dropped) -> str:
    if one.kind not in _OF_THE_CLIENT:
        return "the two hosts talk over another connection"
    talks_on = one.kind == "busy" and _talks_on(one)
    return "the server went on to send on it" if talks_on else "the server responded to other clients"


def _title(one: _Dropped) -> str:
    if one.kind == "busy":
        return f"Path dead since {clock_text(one.at_ns)}"
    return f"Idle connection dropped in between after {seconds_text(one.idle_ns)}"


def _what(one: _Dropped) -> str:
    if one.kind == "busy":
        return f"has a dead path from client to server since {clock_text(one.at_ns)}, in the middle of its work"
    silence = f"after {seconds_text(one.idle_ns)} of silence, from {clock_text(one.heard_ns)} on"
    return f"was dropped in between while idle, {silence}"


def _tried_ms(one: _Dropped) -> float:
    """How long its sender went on trying in vain, as far as packets show it."""
    return max((row["ts"] - one.at_ns for row in one.marks if row["ts"] is not None), default=0) / NS_PER_MS


def _ttls_text(flow: Row, sender: str) -> str:
    """`64`, or `61 to 64` where its packets took several ways."""
    own = [ttl for ttl in _own_ttls(flow, sender) if ttl is not None]
    return str(own[0]) if min(own) == max(own) else f"{min(own)} to {max(own)}"


def _left(one: _Dropped) -> str:
    """The requests that it left without an answer."""
    operations = Counter(row["operation"] or "?" for row in one.waiting)
    named = names_text([f"{number} {name}" for name, number in operations.most_common()], 3)
    return f" Left without a response: {named}." if operations else ""


def _proof(dropped: Sequence[_Dropped]) -> Proof:
    """The first packet of each connection, then what was sent in vain, with its requests."""
    shown = [Evidence(one.flow["file"], one.flow["first_packet"], None) for one in dropped]
    for one in dropped:
        shown += [Evidence(r["request_file"], r["request_packet"], r["request_message_id"]) for r in one.waiting]
        shown += [Evidence(row["file"], row["packet"], None) for row in one.marks]
    return Proof(min(one.heard_ns for one in dropped), max(one.at_ns for one in dropped), shown)


_OTHERS_NAME = " OR ".join(
    f"{side}_reset_ttl < least({side}_ttl, {side}_ttl_lowest) "
    f"OR {side}_reset_ttl > greatest({side}_ttl, {side}_ttl_last)"
    for side in _OTHER
)
_TTL_COLUMNS = ("reset_ttl", "reset_step", "packets", "ttl", "ttl_lowest", "ttl_last")
_TTLS = tuple(f"{side}_{name}" for side in _OTHER for name in _TTL_COLUMNS)
_SUSPECT = f"({_OTHERS_NAME} OR unheard_sends_to_server >= 4 OR unheard_sends_to_client >= 4)"
_ON_SUSPECTS = f"flow_id IN (SELECT flow_id FROM flows WHERE {_SUSPECT})"

RULE = Rule(
    code="NET101",
    question="ended",
    name="idle-dropped",
    severity="warning",
    confidence="high",
    reads={
        "flows": (
            "flow_id", "protocol", *_PAIR, "client_port", "server_port", "file", "ts_first", "first_packet",
            "ts_closed", "reset_by", *_TTLS, "ts_last_from_client", "ts_last_from_server",
            "unheard_sends_to_server", "unheard_sends_to_client", "ts_unheard_to_server", "ts_unheard_to_client",
        ),
        "expert_infos": ("ts", "flow_id", "direction", "code", "file", "packet"),
        "exchanges": (
            "ts", "ts_response", "flow_id", "client_id", "operation", "status", "client_address", "server_address",
            "server_port", "request_file", "request_packet", "request_message_id",
        ),
    },
    partition_by=(),
    signs={"flows": f"bool_or({_SUSPECT})"},
    detect=detect,
    rows={
        # Whether the two hosts go on to talk is seen on their other connections.
        "flows": f"duplicate_of IS NULL AND ({', '.join(_PAIR)}) IN (SELECT ({', '.join(_PAIR)}) FROM flows "
        f"WHERE {_SUSPECT})",
        "expert_infos": f"code IN ('retransmission', 'reset') AND {_ON_SUSPECTS}",
        "exchanges": f"{named_by('exchanges', _SUSPECT)} OR (status = 'unanswered' "
        f"AND answer_due IS DISTINCT FROM false AND {_ON_SUSPECTS}) "
        f"OR {EXCHANGES}",
    },
)  # fmt: skip
