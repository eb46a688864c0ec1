"""What stands out of requests whatever the protocol: clients by operation, what servers answer.

In: nothing. Out: POPULATIONS, over `exchanges` and `flows`.
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
from wirewitness.analyser.engine.rules.broker_clients import IS_OF_A_BROKER
from wirewitness.analyser.tables.queries import IS_TIMED, literal

_OPERATION = f"protocol, cluster_id, operation, {CLIENT}"
_LIKES = f"concat_ws(' ', protocol, operation, case when {IS_OF_A_BROKER} then 'of brokers' end)"
# Programs that make what is there already go on.
_THERE_ALREADY = "(protocol = 'kafka' and error_code = 36)"
_EVERYDAY = _THERE_ALREADY + "".join(
    f" or (protocol = {literal(one.protocol)} and error_code in ({', '.join(map(str, one.codes))})"
    + (f" and operation in ({', '.join(map(literal, one.operations))})" if one.operations else "")
    + ")"
    for one in EVERYDAY
)
_IS_ERROR = f"status = 'error' and not coalesce({_EVERYDAY}, false)"
# What MongoDB's administrators ask for; what programs make when they start (createIndexes) is left out, and Kafka's
# requests are told by KAF309.
ADMIN_OPERATIONS = (
    "drop", "dropDatabase", "dropIndexes", "renameCollection", "collMod", "compact", "killOp", "setParameter",
    "replSetStepDown", "replSetReconfig", "shutdown", "fsync", "convertToCapped", "setFeatureCompatibilityVersion",
)  # fmt: skip
_ADMIN_OPERATIONS = f"({', '.join(map(literal, ADMIN_OPERATIONS))})"
# Requests that programs repeat by a clock of their own, and what only tells that somebody is there.
_PACED = "('Heartbeat', 'ConsumerGroupHeartbeat', 'PINGREQ', 'hello', 'ping', 'isMaster', 'ismaster')"

_BY_OPERATION = f"""
    select {_LIKES} as likes, {_OPERATION}, median(latency_ms) filter ({IS_TIMED}) as median_ms,
           quantile_cont(latency_ms, 0.99) filter ({IS_TIMED}) as slowest_ms, 0 as none,
           coalesce(sum(throttle_time_ms), 0) as throttled_ms, median(request_bytes) as asked_bytes,
           case when count(*) >= 20 and max(epoch_ns(ts)) - min(epoch_ns(ts)) > 5e9
               then (count(*) - 1) * 60e9 / (max(epoch_ns(ts)) - min(epoch_ns(ts))) end as per_minute,
           count(*) filter (failed) as errors, min(error_name) filter (failed) as error, {evidence()}
    from (select *, {_IS_ERROR} as failed from exchanges where operation is not null and status <> 'orphan')
    group by {_OPERATION}"""

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
_SERVER = "protocol, operation, server_address, server_port"
_ERRORS = f"""
    select data.protocol || ' ' || data.operation as likes, data.*, 0 as none, error, clients,
           case when errors > 0.2 * samples then errors end as errors
    from (select {_SERVER}, {evidence()} from exchanges where operation is not null group by {_SERVER}) as data
    join (select {_SERVER}, count(*) as errors, mode(error_name) as error, count(distinct client_address) as clients
          from exchanges where operation is not null and {_IS_ERROR} group by {_SERVER}) as failed
        on {same("data", "failed", _SERVER)}"""

# Who changed what others use: requests of administrators, not of programs that start.
_ADMIN = f"""
    select protocol || ' ' || operation as likes, protocol, {CLIENT}, operation, 0 as none, count(*) as acts,
           {evidence()}
    from exchanges where operation in {_ADMIN_OPERATIONS} and status = 'ok'
    group by protocol, {CLIENT}, operation"""

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
    select {_LIKES} as likes, * from silent join gaps using (protocol, operation, {CLIENT})
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

POPULATIONS = (
    Population(
        "", "exchanges", ("client_id", "client_address", "operation"), _BY_OPERATION,
        (
            Measure("latency", "median_ms", "waiting",
                    "{who}: median latency of {operation} {value}", unit="ms", floor=20,
                    samples=5, two=5),
            Measure("slowest", "slowest_ms", "waiting",
                    "{who}: one in a hundred {operation} takes {value} or more", unit="ms",
                    floor=200, samples=300, ratio=5),
            Measure("throttled", "throttled_ms", "waiting",
                    "{who}: quotas of the server make its {operation} wait {value} in all",
                    usual="none", unit="ms", floor=500, weight=1.5),
            Measure("rate", "per_minute", "repeated",
                    "{who} sends {value} {operation} a minute", floor=60, ratio=5, samples=20),
            Measure("request size", "asked_bytes", "growing",
                    "{who}: {operation} of {value}, median", unit="bytes", floor=2_000,
                    ratio=5, samples=5),
            Measure("errors", "errors", "refused",
                    "{who}: {value} of {samples} {operation} answered with an error, such as "
                    "{error}", floor=2, two=5, samples=3),
        ),
        asks="count(*) >= 10 or sum(greatest(throttle_time_ms, 0)) > 500",
    ),
    Population(
        "", "exchanges", ("client_id", "client_address", "operation"), _REFUSED,
        (Measure("refused", "refused", "refused",
                 "{who}: {operation} refused with {error}, count {value}; {accepted} accepted "
                 "before, none after", usual="none", weight=1.5),),
        asks="bool_or(status = 'error')",
    ),
    Population(
        "", "exchanges", ("server_address", "server_port", "operation"), _ERRORS,
        (Measure("errors of a server", "errors", "refused",
                 "server {server_address}:{server_port} answered "
                 "{value} {operation} with an error, such as {error}; clients with one: {clients}",
                 usual="none", floor=1),),
        asks="count(*) filter (status = 'error') > 1",
    ),
    Population(
        "", "exchanges", ("client_id", "client_address", "operation"), _ADMIN,
        (Measure("administration", "acts", "differs", "{who} sent {value} {operation}", usual="none", weight=0.3),),
        asks=f"bool_or(operation in {_ADMIN_OPERATIONS})",
    ),
    Population(
        "", "flows", ("client_address", "server_address"), _PIECES,
        (Measure("segments per message", "pieces", "repeated",
                 "{client_address} and {server_address} use {value} segments for "
                 "each message", samples=50, floor=1.5),),
        asks="sum(data_segments) > 75",
    ),
    Population(
        "", "exchanges", ("client_id", "client_address", "operation"), _PACE,
        (Measure("silence", "silent_ms", "stalled",
                 "{who}: no {operation} for {value} at the end, while others went on; its "
                 "longest gap before was {usual}", usual="longest_ms", unit="ms", ratio=5, floor=3_000, samples=10),),
        asks="count(*) >= 20 and max(epoch_ns(ts)) - min(epoch_ns(ts)) > 5e9",
    ),
    Population(
        "", "exchanges", ("client_id", "client_address", "operation"), _GROWING,
        (Measure("latency over time", "ended", "growing", "{who}: latency of {operation} grows from {usual} to {value}",
                 usual="began", unit="ms", ratio=2, floor=5),),
        asks="count(*) >= 32",
    ),
    Population(
        "", "exchanges", ("server_address", "server_port"), _STANDING,
        (Measure("server stood still", "slowest_ms", "waiting",
                 "server {server_address}:{server_port} answered {clients} clients "
                 "only after up to {value} at the same time; its median is {usual}", usual="usual_ms", unit="ms",
                 ratio=50, floor=1_000, weight=1.5),),
        asks="max(latency_ms) >= 1000",
    ),
)  # fmt: skip
