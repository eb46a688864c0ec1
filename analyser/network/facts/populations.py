"""What stands out whatever the protocol: clients by operation, servers, connections by how they end.

In: nothing. Out: POPULATIONS, over `exchanges`, `flows` and `connection_ends`.
"""

from __future__ import annotations

from wirewitness.analyser.engine.outliers.populations import (
    CLIENT,
    Measure,
    Population,
    columns_of,
    evidence,
    quarters,
    same,
)
from wirewitness.analyser.engine.rules.benign_errors import EVERYDAY
from wirewitness.analyser.tables.queries import IS_TIMED, literal

_OPERATION = f"protocol, cluster_id, operation, {CLIENT}"
# Programs that make what is there already go on.
_THERE_ALREADY = "(protocol = 'kafka' and error_code = 36)"
_EVERYDAY = _THERE_ALREADY + "".join(
    f" or (protocol = {literal(one.protocol)} and error_code in ({', '.join(map(str, one.codes))})"
    + (f" and operation in ({', '.join(map(literal, one.operations))})" if one.operations else "")
    + ")"
    for one in EVERYDAY
)
_IS_ERROR = f"status = 'error' and not coalesce({_EVERYDAY}, false)"
# Requests that programs repeat by a clock of their own, and what only tells that somebody is there.
_PACED = "('Heartbeat', 'ConsumerGroupHeartbeat', 'PINGREQ', 'hello', 'ping', 'isMaster', 'ismaster')"

_BY_OPERATION = f"""
    select protocol || ' ' || operation as likes, {_OPERATION}, median(latency_ms) filter ({IS_TIMED}) as median_ms,
           quantile_cont(latency_ms, 0.99) filter ({IS_TIMED}) as slowest_ms, 0 as none,
           coalesce(sum(throttle_time_ms), 0) as throttled_ms, median(request_bytes) as asked_bytes,
           case when count(*) >= 20 and max(epoch_ns(ts)) - min(epoch_ns(ts)) > 5e9
               then (count(*) - 1) * 60e9 / (max(epoch_ns(ts)) - min(epoch_ns(ts))) end as per_minute,
           count(*) filter ({_IS_ERROR}) as errors, min(error_name) filter ({_IS_ERROR}) as error, {evidence()}
    from exchanges where operation is not null and status <> 'orphan' group by {_OPERATION}"""

# Errors after the last success: one where there was none at all, else two.
_REFUSED = f"""
    with failed as (
        select {_OPERATION}, ts, exchange_id, error_name from exchanges
        where {_IS_ERROR} and operation is not null),
    good as (
        select {_OPERATION}, max(ts) as last_ok, count(*) as accepted from exchanges
        where status = 'ok' and operation in (select operation from failed) group by {_OPERATION})
    select failed.protocol || ' ' || failed.operation as likes, {columns_of("failed", _OPERATION)}, 0 as none,
           count(*) as refused, coalesce(accepted, 0) as accepted, min(error_name) as error, {evidence()}
    from failed left join good on {same("failed", "good", _OPERATION)}
    where last_ok is null or ts > last_ok
    group by {columns_of("failed", _OPERATION)}, accepted having count(*) >= 2 or accepted is null"""

# The same by server: what it refuses everybody is no difference of one client.
_ERRORS = f"""
    select protocol || ' ' || operation as likes, protocol, operation, server_address, server_port, 0 as none, error,
           case when errors > 0.2 * every then errors end as errors, clients, data.* exclude (
               protocol, operation, server_address, server_port, error, errors, every, clients)
    from (select protocol, operation, server_address, server_port, count(*) as every,
                 count(*) filter ({_IS_ERROR}) as errors, mode(error_name) filter ({_IS_ERROR}) as error,
                 count(distinct client_address) filter ({_IS_ERROR}) as clients, {evidence()}
          from exchanges where operation is not null
          group by protocol, operation, server_address, server_port) as data"""

# Data segments that each message takes, those that its size asks for aside.
_PIECES = """
    select protocol || ' ' || server_address as likes, protocol, client_address, server_address,
           greatest(sum(data_segments) - sum(bytes_to_server + bytes_to_client) / 1448, 0) / sum(sent) as pieces,
           sum(sent)::bigint as samples, min(epoch_ns(ts_first)) as first_ns, max(epoch_ns(ts_last)) as last_ns,
           [arg_max(flow_id, sent)] as ids
    from flows join (select flow_id, count(*) + count(ts_response) as sent from exchanges group by flow_id)
        using (flow_id)
    where duplicate_of is null and not coalesce(encrypted, false)
    group by protocol, client_address, server_address"""

# From the last request to the last one of others while its connection is open, and the longest gap before.
_PACE = f"""
    with paced as (
        select {_OPERATION}, max(ts) as last, {evidence()} from exchanges
        where operation not in {_PACED} and direction = 'client_to_server' and client_id is not null
        group by {_OPERATION} having count(*) >= 10 and max(epoch_ns(ts)) - min(epoch_ns(ts)) > 2e9),
    open as (select client_address, max(coalesce(ts_closed, observed_until)) as until from flows
             where duplicate_of is null group by client_address),
    others as (select protocol, operation, max(last) as newest from paced group by protocol, operation
               having count(*) >= 2),
    silent as (
        select paced.*, (least(epoch_ns(newest), epoch_ns(until)) - epoch_ns(last)) / 1e6 as silent_ms
        from paced join others using (protocol, operation) join open using (client_address)
        where silent_ms > 3000 and silent_ms < 2 * (last_ns - first_ns) / 1e6
              and silent_ms > 5 * (last_ns - first_ns) / 1e6 / (samples - 1)),
    gaps as (
        select protocol, operation, {CLIENT}, max(gap_ms) as longest_ms, median(gap_ms) as gap_ms
        from (select *, (epoch_ns(ts) - lag(epoch_ns(ts)) over (partition by {_OPERATION} order by ts)) / 1e6 as gap_ms
              from exchanges semi join silent using (protocol, operation, {CLIENT}))
        group by protocol, operation, {CLIENT})
    select protocol || ' ' || operation as likes, * from silent join gaps using (protocol, operation, {CLIENT})
    where longest_ms < 20 * gap_ms"""

_GROWING = f"""
    select protocol || ' ' || operation as likes, * from (
        {quarters("latency_ms", _OPERATION, f"exchanges where {IS_TIMED} and protocol <> 'mongo'")})"""

# Requests that wait at one server at the same time as its slowest one, of several clients: it stood still.
_STANDING = f"""
    with timed as (
        select protocol, server_address, server_port, {CLIENT}, exchange_id, ts, ts_response, latency_ms,
               median(latency_ms) over (partition by protocol, server_address, server_port) as median_ms
        from exchanges where {IS_TIMED} and ts_response is not null and protocol is not null),
    slowest as (
        select protocol, server_address, server_port, arg_max(ts, latency_ms) as begun,
               arg_max(ts_response, latency_ms) as over, max(latency_ms) as slowest_ms, any_value(median_ms) as usual_ms
        from timed group by protocol, server_address, server_port having max(latency_ms) >= 1000)
    select protocol as likes, protocol, server_address, server_port, slowest_ms, usual_ms,
           count(distinct row(client_id, client_address)) as clients, {evidence()}
    from timed join slowest using (protocol, server_address, server_port)
    where latency_ms > 0.2 * slowest_ms and ts < over and ts_response > begun
    group by protocol, server_address, server_port, slowest_ms, usual_ms
    having count(distinct row(client_id, client_address)) >= 2"""

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
           count(*) filter (handshake = 'complete' and closed_by = 'client' and bytes_to_client = 0
                            and bytes_to_server > 0) as left_early,
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
        "", "exchanges", ("client_id", "client_address", "operation"), _BY_OPERATION,
        (
            Measure("latency", "median_ms", "{who}: median latency of {operation} {value}", unit="ms", floor=20,
                    samples=5, two=5),
            Measure("slowest", "slowest_ms", "{who}: one in a hundred {operation} takes {value} or more", unit="ms",
                    floor=200, samples=300, ratio=5),
            Measure("throttled", "throttled_ms", "{who}: quotas of the server make its {operation} wait {value} in all",
                    usual="none", unit="ms", floor=500, weight=1.5),
            Measure("rate", "per_minute", "{who} sends {value} {operation} a minute", floor=60, ratio=5, samples=20),
            Measure("request size", "asked_bytes", "{who}: {operation} of {value}, median", unit="bytes", floor=2_000,
                    ratio=5, samples=5),
            Measure("errors", "errors", "{who}: {value} of {samples} {operation} answered with an error, such as "
                    "{error}", floor=2, two=5, samples=3),
        ),
    ),
    Population(
        "", "exchanges", ("client_id", "client_address", "operation"), _REFUSED,
        (Measure("refused", "refused", "{who}: {operation} refused with {error}, count {value}; {accepted} accepted "
                 "before, none after", usual="none", weight=1.5),),
    ),
    Population(
        "", "exchanges", ("server_address", "server_port", "operation"), _ERRORS,
        (Measure("errors of a server", "errors", "server {server_address}:{server_port} answered {value} {operation} "
                 "of {clients} clients with an error, such as {error}", usual="none", floor=1),),
    ),
    Population(
        "", "flows", ("client_address", "server_address"), _PIECES,
        (Measure("segments per message", "pieces", "{client_address} and {server_address} use {value} segments for "
                 "each message", samples=50, floor=1.5),),
    ),
    Population(
        "", "exchanges", ("client_id", "client_address", "operation"), _PACE,
        (Measure("silence", "silent_ms", "{who}: no {operation} for {value} at the end, while others went on; its "
                 "longest gap before was {usual}", usual="longest_ms", unit="ms", ratio=5, floor=3_000, samples=10),),
    ),
    Population(
        "", "exchanges", ("client_id", "client_address", "operation"), _GROWING,
        (Measure("latency over time", "ended", "{who}: latency of {operation} grows from {usual} to {value}",
                 usual="began", unit="ms", ratio=2, floor=5),),
    ),
    Population(
        "", "exchanges", ("server_address", "server_port"), _STANDING,
        (Measure("server stood still", "slowest_ms", "server {server_address}:{server_port} answered {clients} clients "
                 "only after up to {value} at the same time; its median is {usual}", usual="usual_ms", unit="ms",
                 ratio=50, floor=1_000, weight=1.5),),
    ),
    Population(
        "", "flows", ("client_address", "server_address", "server_port"), _ENDS,
        (
            Measure("server closes without a byte", "closed_unanswered", "server {server_address}:{server_port} closed "
                    "{value} connections of {client_address} without a byte; it answered on {answered}", usual="none",
                    floor=2, weight=1.5),
            Measure("client gives up", "given_up", "{client_address} closed {value} connections to "
                    "{server_address}:{server_port} before a byte came, after {age_s} s; answered were {answered}",
                    usual="none", floor=2, weight=1.5),
            Measure("connections refused", "refused", "{value} connections of {client_address} to "
                    "{server_address}:{server_port} were not taken; {answered} were answered", usual="none", floor=2),
            Measure("HTTP", "http", "server {server_address}:{server_port} answers with HTTP, where {protocol} is "
                    "expected, on {value} connections", usual="none", weight=2.0),
            Measure("never confirmed", "unheard", "between {client_address} and {server_address}:{server_port} the "
                    "same bytes were sent {value} times and never confirmed", usual="none", floor=2, weight=1.5),
            Measure("way to the server", "handshake_ms", "TCP handshakes of {client_address} with "
                    "{server_address}:{server_port} take {value}", unit="ms", floor=5, two=5),
            Measure("connections", "connections", "{client_address} made {value} connections to "
                    "{server_address}:{server_port}", floor=10, ratio=5, two=5),
            Measure("TLS handshakes", "tls_refused", "{value} TLS handshakes of {client_address} with "
                    "{server_address}:{server_port} failed ({alert}); {tls_done} were completed", usual="none",
                    weight=1.5),
            Measure("ended by the server", "ended_by_server", "server {server_address}:{server_port} ended {value} "
                    "connections of {client_address}", floor=1.5, two=1, likes="server"),
            Measure("sent again", "resent_percent", "{value} of the segments between {client_address} and "
                    "{server_address}:{server_port} were sent again", unit="%", floor=1, two=1, likes="server"),
            Measure("buffer full", "client_full_ms", "{client_address} took nothing from "
                    "{server_address}:{server_port} for {value} in all: its receive window was 0", usual="none",
                    unit="ms", floor=500),
            Measure("buffer full", "server_full_ms", "server {server_address}:{server_port} took nothing from "
                    "{client_address} for {value} in all: its receive window was 0", usual="none", unit="ms",
                    floor=500),
        ),
    ),
    Population(
        "", "connection_ends", ("client_address", "server_address"), _SAME_AGE,
        (Measure("same age", "alike", "the server ended {value} connections of {client_address} at the same age of "
                 "{middle_s} s, {usual} at another", usual="unlike", ratio=4, floor=4, weight=1.2),),
    ),
    Population(
        "", "connection_ends", ("side",), _SAME_AGE_OF_ALL,
        (Measure("same age", "alike", "{side} ended {value} connections at the same age of {middle_s} s, {usual} at "
                 "another", usual="unlike", ratio=4, floor=4),),
    ),
    Population(
        "", "connection_ends", ("client_address", "pending_operations"), _SAME_WAIT,
        (Measure("same wait", "alike", "{client_address} closed {value} connections {middle_s} s after a "
                 "{pending_operations} that had no response by then, {usual} after another time", usual="unlike",
                 ratio=4, floor=2, weight=1.5),),
    ),
    Population(
        "", "connection_ends", ("client_address", "operation"), _TOO_LARGE,
        (Measure("too large", "smallest", "the server ended {times} connections of {client_address} with a {operation} "
                 "of {value} or more pending; the largest one that it answered has {usual}", usual="largest",
                 unit="bytes", ratio=1.0, samples=2, weight=1.5),),
    ),
)  # fmt: skip
