"""Who talks to whom. In: a source; out: one value per pair of client address and server endpoint."""

from __future__ import annotations

# A SELECT for tables that are filtered and paged where they are.
PEERS = """
    select client_address, server_address, server_port, coalesce(protocol, 'not identified') as protocol,
           count(*) as connections, sum(packets)::bigint as packets,
           sum(bytes_to_server)::bigint as bytes_to_server, sum(bytes_to_client)::bigint as bytes_to_client,
           sum(gap_bytes)::bigint as gap_bytes, sum(retransmitted_segments)::bigint as retransmitted_segments,
           count(*) filter (closed_by like '%rst%' or reset_by is not null) as resets,
           min(ts_first) as ts_first, max(ts_last) as ts_last
    from flows group by all"""
