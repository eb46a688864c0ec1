"""What stands out of connections whatever the protocol: how they begin and end, how data passes on them.

In: nothing. Out: POPULATIONS, over `flows`, `connection_ends` and `exchanges`.
"""

from __future__ import annotations

from wirewitness.analyser.engine.outliers.populations import Measure, Population, evidence

# flows of a protocol, to a port where one is expected, or not let in by a host that speaks one at another port.
_FLOWS = """(
    select *, coalesce(protocol, port_protocol, case when handshake in ('refused', 'unanswered') then
               (select min(spoken.protocol) from flows as spoken where spoken.server_address = flows.server_address)
           end) as expected
    from flows where duplicate_of is null) where expected is not null"""
_ENDS = f"""
    select *, case when closed > 0.2 * answered then closed end as closed_unanswered,
           case when left_early > 0.2 * answered then left_early end as given_up,
           case when untaken > 0.5 * answered then untaken end as refused,
           case when tls_failed > 0.5 * tls_done then tls_failed end as tls_refused,
           case when segments >= 200 then 100 * resent / segments end as resent_percent
    from (
        select expected as likes, expected as protocol, concat_ws(' ', expected, server_address, server_port) as server,
           client_address, server_address, server_port,
           count(*) filter (handshake = 'complete' and closed_by = 'server' and bytes_to_client = 0
                            and bytes_to_server > 0) as closed,
           count(*) filter (handshake = 'complete' and closed_by = 'client' and bytes_to_client = 0) as left_early,
           count(*) filter (handshake in ('refused', 'unanswered')) as untaken,
           count(*) filter (bytes_to_client > 0) as answered,
           count(*) filter (closed_by = 'server' and bytes_to_client > 0) as ended_by_server,
           count(*) filter (tls_handshake <> 'complete') as tls_failed,
           count(*) filter (tls_handshake = 'complete') as tls_done,
           coalesce(min(client_tls_alert), min(server_tls_alert), 'no alert') as alert,
           sum(retransmitted_segments) as resent, sum(data_segments) as segments,
           sum(coalesce(client_zero_window_ms, 0)) as client_full_ms,
           sum(coalesce(server_zero_window_ms, 0)) as server_full_ms,
           count(*) filter (server_opening = 'http' and carrier is null) as http,
           max(greatest(coalesce(unheard_sends_to_server, 0), coalesce(unheard_sends_to_client, 0))) as unheard,
           0 as none, count(*) as connections, median(handshake_ms) as handshake_ms,
           round(median((epoch_ns(ts_last) - epoch_ns(ts_first)) / 1e9), 1) as age_s, {evidence("flow_id", "ts_first")}
    from {_FLOWS}
    group by expected, client_address, server_address, server_port)"""

_AGED = """
    select ends.ts, ends.flow_id, ends.protocol, ends.client_address, ends.server_address, ended_by,
           (epoch_ns(ends.ts) - epoch_ns(ts_first)) / 1e6 as age_ms
    from connection_ends as ends join flows using (flow_id)
    where handshake_seen"""
_ALIKE = f"""
    count(*) filter (abs(age_ms - middle) <= 0.05 * middle) as alike,
    count(*) filter (abs(age_ms - middle) > 0.05 * middle) as unlike, {evidence("flow_id", "ts")}"""
# Ends of one side after the same time: since the connection began, or since the last answer.
_SAME_AGE = f"""
    select protocol as likes, protocol, client_address, server_address, round(median(age_ms) / 1e3, 1) as middle_s,
           {_ALIKE}
    from (
        select *, median(age_ms) over (partition by protocol, client_address, server_address) as middle
        from ({_AGED} and ended_by = 'server'))
    where middle >= 1000
    group by protocol, client_address, server_address"""
# Likewise of all connections of a server, or of a client: who limits their age asks nobody who they are. Ends for
# longer than that age: a pool that closes has them at once.
_SAME_AGE_OF_ALL = f"""
    select protocol as likes, protocol, ended_by || ' ' || address as side, round(median(age_ms) / 1e3, 1) as middle_s,
           {_ALIKE}
    from (
        select *, median(age_ms) over (partition by protocol, ended_by, address) as middle
        from (select *, case when ended_by = 'server' then server_address else client_address end as address
              from ({_AGED} and ended_by is not null)))
    where middle >= 1000
    group by protocol, ended_by, address having max(epoch_ns(ts)) - min(epoch_ns(ts)) > 1e6 * median(age_ms)"""
_SAME_WAIT = f"""
    select protocol as likes, protocol, client_address, pending_operations,
           round(median(waited_ms) / 1e3, 1) as middle_s,
           count(*) filter (abs(waited_ms - middle) <= 0.1 * middle) as alike,
           count(*) filter (abs(waited_ms - middle) > 0.1 * middle) as unlike, {evidence("flow_id", "ts")}
    from (
        select *, median(waited_ms) over (partition by protocol, client_address, pending_operations) as middle
        from (select *, (epoch_ns(ts) - epoch_ns(ts_pending)) / 1e6 as waited_ms from connection_ends
              where ended_by = 'client' and (pending_due > 0 or late_responses > 0) and ts_pending is not null))
    where middle >= 50
    group by protocol, client_address, pending_operations"""

# Requests that were pending when the server ended the connection, all larger than any that it answered.
_TOO_LARGE = f"""
    with open as (
        select ends.protocol, ends.server_address, ends.server_port, operation, request_bytes, ends.client_address,
               ends.flow_id, ends.ts
        from connection_ends as ends join exchanges as asked using (flow_id)
        where ended_by = 'server' and asked.status = 'unanswered' and ends.pending_due + ends.pending_cut > 0),
    answered as (
        select server_address, server_port, operation, max(request_bytes) as largest from exchanges
        where ts_response is not null and operation in (select operation from open)
        group by server_address, server_port, operation)
    select open.protocol as likes, open.protocol, open.client_address, open.operation, min(request_bytes) as smallest,
           any_value(largest) as largest, count(distinct open.flow_id) as times, {evidence("open.flow_id", "open.ts")}
    from open join answered using (server_address, server_port, operation)
    group by open.protocol, open.client_address, open.operation"""

POPULATIONS = (
    Population(
        "", "flows", ("client_address", "server_address", "server_port"), _ENDS,
        (
            Measure("server closes without a byte", "closed_unanswered", "ended",
                    "server {server_address}:{server_port} closed "
                    "{value} connections of {client_address} without a byte; it answered on {answered}", usual="none",
                    floor=2, weight=1.5),
            Measure("client gives up", "given_up", "ended", "{client_address} closed {value} connections to "
                    "{server_address}:{server_port} before a byte came, after {age_s} s; answered were {answered}",
                    usual="none", floor=2, weight=1.5),
            Measure("connections refused", "refused", "ended", "{value} connections of {client_address} to "
                    "{server_address}:{server_port} were not taken; {answered} were answered", usual="none", floor=2),
            Measure("HTTP", "http", "ended",
                    "server {server_address}:{server_port} answers with HTTP, where {protocol} is "
                    "expected, on {value} connections", usual="none", weight=2.0),
            Measure("never confirmed", "unheard", "ended",
                    "between {client_address} and {server_address}:{server_port} the "
                    "same bytes were sent {value} times and never confirmed", usual="none", floor=2, weight=1.5),
            Measure("way to the server", "handshake_ms", "waiting", "TCP handshakes of {client_address} with "
                    "{server_address}:{server_port} take {value}", unit="ms", floor=5, two=5),
            Measure("connections", "connections", "repeated", "{client_address} made {value} connections to "
                    "{server_address}:{server_port}", floor=10, ratio=5, two=5),
            Measure("TLS handshakes", "tls_refused", "refused", "{value} TLS handshakes of {client_address} with "
                    "{server_address}:{server_port} failed ({alert}); {tls_done} were completed", usual="none",
                    weight=1.5),
            Measure("ended by the server", "ended_by_server", "ended",
                    "server {server_address}:{server_port} ended {value} "
                    "connections of {client_address}", floor=1.5, two=1, likes="server"),
            Measure("sent again", "resent_percent", "waiting", "{value} of the segments between {client_address} and "
                    "{server_address}:{server_port} were sent again", unit="%", floor=1, two=1, likes="server"),
            Measure("buffer full", "client_full_ms", "waiting", "{client_address} took nothing from "
                    "{server_address}:{server_port} for {value} in all: its receive window was 0", usual="none",
                    unit="ms", floor=500),
            Measure("buffer full", "server_full_ms", "waiting",
                    "server {server_address}:{server_port} took nothing from "
                    "{client_address} for {value} in all: its receive window was 0", usual="none", unit="ms",
                    floor=500),
        ),
    ),
    Population(
        "", "connection_ends", ("client_address", "server_address"), _SAME_AGE,
        (Measure("same age", "alike", "ended",
                 "the server ended {value} connections of {client_address} at the same age of "
                 "{middle_s} s, {usual} at another", usual="unlike", ratio=4, floor=4, weight=1.2),),
        asks="count(*) filter (ended_by = 'server') > 4",
    ),
    Population(
        "", "connection_ends", ("side",), _SAME_AGE_OF_ALL,
        (Measure("same age", "alike", "ended",
                 "the {side} ended {value} connections at the same age of {middle_s} s, {usual} at "
                 "another", usual="unlike", ratio=4, floor=4),),
        asks="count(ended_by) > 4",
    ),
    Population(
        "", "connection_ends", ("client_address", "pending_operations"), _SAME_WAIT,
        (Measure("same wait", "alike", "ended", "{client_address} closed {value} connections {middle_s} s after a "
                 "{pending_operations} that had no response by then, {usual} after another time", usual="unlike",
                 ratio=4, floor=2, weight=1.5),),
        asks="count(*) filter (ended_by = 'client' and (pending_due > 0 or late_responses > 0)) > 2",
    ),
    Population(
        "", "connection_ends", ("client_address", "operation"), _TOO_LARGE,
        (Measure("too large", "smallest", "ended",
                 "the server ended {times} connections of {client_address} with a {operation} "
                 "of {value} or more pending; the largest one that it answered has {usual}", usual="largest",
                 unit="bytes", ratio=1.0, samples=2, weight=1.5),),
        asks="bool_or(ended_by = 'server' and pending_due + pending_cut > 0)",
    ),
)  # fmt: skip
