"""A client whose bytes arrive nowhere after a pause, while its server answers others in the very same seconds.

In: the client's connection, when it sent again in vain, exchanges of the server. Out: does that clear the server, and
is it no pause that the connection had survived before? SQL that picks the few exchanges which tell.

Bytes that TCP sends again at 0.2, 0.6, 1.4, 3 s ... (RFC 6298) are a probe of the path each time. Where the server
answered somebody else within the second of a try, its host was on the network then, and what stood in the way of this
one client lies between the two. One lost segment is chance, so three tries must have such a witness (WITNESSES).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.engine.rules.frame_rows import Row

WITNESSES = 3
# A pause that was survived is as long where it is nine tenths of the one that was not.
_AS_LONG = 0.9
_SERVER = ("server_address", "server_port")
_MOST_SENT = "unheard_sends_to_server >= 4"


class Answers:
    """When each server answered, and what came on each connection. exchanges: as EXCHANGES picks them."""

    def __init__(self, exchanges: Iterable[Mapping[str, Any]]) -> None:
        self._clients: dict[tuple[Any, ...], set[str]] = {}
        self._answered: dict[str, list[int]] = {}
        for row in exchanges:
            if row["ts_response"] is None:
                continue
            second = row["ts_response"] // NS_PER_S
            self._clients.setdefault((*(row[name] for name in _SERVER), second), set()).add(row["client_address"])
            self._answered.setdefault(row["flow_id"], []).append(row["ts"])

    def witnesses(self, flow: Row, tries: Iterable[int]) -> int:
        """Seconds of these tries in which the server of the flow answered another client's address."""
        place, own = tuple(flow[name] for name in _SERVER), {flow["client_address"]}
        seconds = {tried // NS_PER_S for tried in tries}
        return sum(bool(self._clients.get((*place, second), own) - own) for second in seconds)

    def survived(self, flow: Row, idle_ns: int) -> bool:
        """Was a request answered on it that can have followed a pause as long?"""
        begun = flow["ts_first"] + round(_AS_LONG * idle_ns)
        return any(ts >= begun for ts in self._answered.get(flow["flow_id"], ()))


# Answers within a second in which somebody sent again in vain: one of each server and second.
_WITNESSES = f"""exchange_id IN (
    SELECT min(exchange_id) FROM exchanges
    WHERE (server_address, server_port, epoch_ns(ts_response) // {NS_PER_S}) IN (
        SELECT (flows.server_address, flows.server_port, epoch_ns(tried.ts) // {NS_PER_S})
        FROM expert_infos AS tried JOIN flows ON flows.flow_id = tried.flow_id AND flows.{_MOST_SENT}
        WHERE tried.code = 'retransmission' AND tried.ts >= flows.ts_unheard_to_server)
    GROUP BY server_address, server_port, epoch_ns(ts_response) // {NS_PER_S})"""

# Requests that were answered after a pause on a connection that was dead after another one no longer than that.
_SURVIVED = f"""exchange_id IN (
    SELECT exchange_id FROM (
        SELECT asked.exchange_id, asked.ts_response,
               epoch_ns(ts_unheard_to_server) - epoch_ns(ts_last_from_server) AS deadly_ns,
               epoch_ns(asked.ts) - max(epoch_ns(coalesce(asked.ts_response, asked.ts))) OVER (
                   PARTITION BY asked.flow_id ORDER BY asked.ts, asked.exchange_id
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS quiet_ns
        FROM exchanges AS asked JOIN flows ON flows.flow_id = asked.flow_id AND flows.{_MOST_SENT})
    WHERE ts_response IS NOT NULL AND quiet_ns >= {_AS_LONG} * deadly_ns)"""

# SQL on exchanges: those that `Answers` wants.
EXCHANGES = f"{_WITNESSES} OR {_SURVIVED}"
