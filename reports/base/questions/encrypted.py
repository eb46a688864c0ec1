"""What encrypted connections show without keys: who speaks to whom, how much, how often, and what it is likely to be.

In: an analysis. Out: `EncryptedPair`s, a client and a server each, those with most bytes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wirewitness.dissectors.core.encryption import DECRYPTED, LOST
from wirewitness.dissectors.registry import PROTOCOLS
from wirewitness.reports.base.questions.source import Source, rows

_PLACE = "client_address, server_address, server_port"
_PAIRS = f"""
    with hidden as (
        select *, epoch_ns(ts_first) as began_ns, epoch_ns(ts_last) - epoch_ns(ts_first) as lasted_ns
        from flows
        where encrypted and duplicate_of is null and protocol is null and bytes_to_server + bytes_to_client > 0
              and coalesce(tls_decryption, '') not in ('{DECRYPTED}', '{LOST}')
    ),
    in_turn as (
        select *, began_ns - lag(began_ns) over (partition by {_PLACE} order by began_ns) as since_last_ns from hidden
    )
    select {_PLACE}, any_value(sni) as sni, any_value(tls_alpn) as alpn, any_value(port_protocol) as port_protocol,
           count(*) as connections, sum(bytes_to_server)::bigint as bytes_to_server,
           sum(bytes_to_client)::bigint as bytes_to_client,
           count(*) filter (tls_handshake = 'complete') as complete,
           count(*) filter (tls_handshake <> 'complete') as failed,
           median(tls_handshake_ms) as handshake_ms, median(lasted_ns)::bigint as lasted_ns,
           case when count(*) > 2 then median(since_last_ns)::bigint end as connection_every_ns,
           (sum(lasted_ns) / nullif(sum(client_packets), 0))::bigint as client_packet_every_ns,
           mode(tls_decryption) as decryption
    from in_turn group by {_PLACE}
    order by sum(bytes_to_server + bytes_to_client) desc, {_PLACE}"""


@dataclass(frozen=True, slots=True)
class EncryptedPair:
    """A client and a server with their connections that nobody could read.

    complete, failed: handshakes, of those whose outcome is known. handshake_ms, lasted_ns, connection_every_ns:
    medians; the last one is the time between the beginnings of connections, None for fewer than three.
    client_packet_every_ns: on average. decryption: what most of them lack, in the words of `flows.tls_decryption`.
    """

    client_address: str
    server_address: str
    server_port: int
    sni: str | None
    alpn: str | None
    port_protocol: str | None
    connections: int
    bytes_to_server: int
    bytes_to_client: int
    complete: int
    failed: int
    handshake_ms: float | None
    lasted_ns: int
    connection_every_ns: int | None
    client_packet_every_ns: int | None
    decryption: str | None

    @property
    def likely(self) -> tuple[str, str] | None:
        """A protocol's name and by what it is likely; the surest sign counts. None where nothing tells."""
        return next(_signs(self), None)


def _signs(pair: EncryptedPair) -> Iterator[tuple[str, str]]:
    """ALPN is agreed on by both sides, a server's name is chosen by people, a port is a habit."""
    alpn, name = (pair.alpn or "").lower(), (pair.sni or "").lower()
    for one in PROTOCOLS.values():
        if one.name in alpn:
            yield one.name, "ALPN"
    for one in PROTOCOLS.values():
        if any(part in name for part in (one.name, *one.server_names)):
            yield one.name, "server name"
    if pair.port_protocol is not None:
        yield pair.port_protocol, "port"


def encrypted_pairs(source: Source) -> list[EncryptedPair]:
    """All pairs with connections that speak TLS and could not be read."""
    return [EncryptedPair(**row) for row in rows(source, _PAIRS)]
