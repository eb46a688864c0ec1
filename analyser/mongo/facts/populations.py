"""What stands out in MongoDB: what applications ask again and again, what grows, who meets whom.

In: nothing. Out: POPULATIONS, over MongoDB's finished tables.
"""

from __future__ import annotations

from wirewitness.analyser.engine.outliers.populations import Measure, Population, evidence, quarters

_WHO = "app_name, client_address"
_NAMESPACE = "concat_ws('.', database, collection) as namespace"
# What drivers ask by themselves.
_OF_DRIVERS = (
    "('hello', 'ismaster', 'isMaster', 'saslStart', 'saslContinue', 'endSessions', 'ping', 'buildInfo', 'killCursors', "
    "'commitTransaction', 'abortTransaction', 'getMore')"
)
_COMMANDS = (
    f"(select *, {_NAMESPACE}, app_name as client_id from mongo_commands where command is not null "
    f"and not coalesce(awaitable, false) and command not in {_OF_DRIVERS})"
)
_KEY = "client_id, client_address, namespace, command"
_STEADY = "('createIndexes', 'listCollections', 'listDatabases', 'listIndexes', 'collStats', 'dbStats', 'create')"

_BY_COMMAND = f"""
    select namespace || ' ' || command as likes, *, samples as commands, samples - idle as effective,
           case when distinct_sessions >= 0.9 * samples then samples end as sessions,
           case when command in {_STEADY} then samples end as prepared
    from (
        select {_KEY}, {evidence()},
            count(*) filter (command = 'update' and coalesce(n_modified, 0) = 0 and coalesce(upserted, 0) = 0
                             and status = 'ok' and not coalesce(n > 0 and contains(query_shape, '"upsert":true'), false)
                             or command = 'delete' and n = 0
                             or command in ('find', 'aggregate') and documents_returned = 0) as idle,
            nullif(count(distinct lsid) filter (lsid is not null), 0) as distinct_sessions,
            case when command = 'insert' and median(documents_sent) = 1 then count(*) end as singles,
            count(*) filter (unacknowledged) as unacknowledged, 0 as none, 1 as one,
            nullif(sum(greatest(documents_sent::hugeint - n - write_errors, 0))
                filter (command = 'insert' and status = 'ok' and not coalesce(unacknowledged, false)), 0) as untried,
            median(documents_returned) as returned, median(response_bytes) as reply_bytes,
            median(latency_ms) as median_ms, sum(latency_ms) as all_ms, 'mongo' as every,
            nullif(sum(coalesce(upserted, 0)), 0) as upserts,
            sum(greatest(n - coalesce(upserted, 0), 0)) filter (command = 'update') as updated
        from {_COMMANDS} group by {_KEY})"""
# The same values in the same query.
_SAME = f"""
    select namespace || ' ' || command as likes, {_KEY}, sum(times)::bigint as every, max(times) as times,
           case when max(times) > 0.8 * sum(times) then max(times) end as again, 0 as none, max(samples) as samples,
           max(gone) as gone, min(first_ns) as first_ns, max(last_ns) as last_ns, arg_max(ids, times) as ids
    from (select {_KEY}, shape_id, literals_id, count(*) as times, {evidence()},
                 case when count(*) filter (documents_returned > 0) >= 3 and arg_min(documents_returned, ts) > 0
                           and arg_max(documents_returned, ts) > 0
                     then nullif(count(*) filter (documents_returned = 0), 0) end as gone
          from {_COMMANDS}
          where literals_id is not null and command in ('find', 'aggregate', 'count', 'distinct')
          group by {_KEY}, shape_id, literals_id)
    group by {_KEY}"""


def _growing(column: str) -> str:
    return f"select namespace || ' ' || command as likes, * from ({quarters(column, _KEY, _COMMANDS)})"


_SKIPPED = f"""
    select namespace as likes, {_KEY}, corr(skip, latency_ms) as r,
           median(latency_ms) filter (skip >= high) as far_ms, median(latency_ms) filter (skip <= low) as near_ms,
           max(skip) as farthest, {evidence()}
    from (select *, quantile_disc(skip, 0.75) over (partition by {_KEY}) as high,
                 quantile_disc(skip, 0.25) over (partition by {_KEY}) as low
          from {_COMMANDS} where latency_ms is not null and skip is not null)
    group by {_KEY} having count(*) filter (skip > 0) > 10 and corr(skip, latency_ms) > 0.7"""

_HELLOS = f"""
    select 'mongo' as likes, client_address, any_value(app_name) as client_id, count(*) as hellos, 0 as none,
           count(*) filter (command not in ('hello', 'ismaster', 'isMaster')) as others,
           string_agg(distinct server_address, ', ' order by server_address) as servers,
           string_agg(distinct advertised_hosts, ', ' order by advertised_hosts) as hosts, {evidence()}
    from mongo_commands where command is not null
    group by client_address
    having count(*) filter (command not in ('hello', 'ismaster', 'isMaster')) = 0"""

# Who holds what others conflict with: transactions on the same collection at that time.
_CONFLICTS = f"""
    with conflicts as (select * from {_COMMANDS} where error_code = 112 or list_contains(write_error_codes, 112))
    select conflicts.namespace as likes, conflicts.client_id, conflicts.client_address, conflicts.namespace,
           count(distinct conflicts.exchange_id) as times, 0 as none,
           string_agg(distinct holder.name, ', ' order by holder.name) as holders,
           {evidence("conflicts.exchange_id", "conflicts.ts")}
    from conflicts left join (select *, coalesce(app_name, '') || ' at ' || client_address as name
                             from mongo_transactions) as holder
        on list_contains(string_split(holder.namespaces_written, ','), conflicts.namespace)
           and holder.ts <= conflicts.ts and coalesce(holder.ts_ended, holder.ts_last) >= conflicts.ts
           and holder.lsid is distinct from conflicts.lsid
    group by conflicts.namespace, conflicts.client_id, conflicts.client_address"""
# Transactions of one command that only reads, which is the same without one.
_ONLY_READ = f"""
    select 'mongo' as likes, app_name as client_id, client_address, count(*) filter (alone) as reads,
           count(*) filter (not alone) as others, {evidence()}
    from (select *, commands = 1 and command_names in ('find', 'aggregate', 'count', 'distinct') as alone
          from mongo_transactions where outcome = 'committed')
    group by app_name, client_address"""
# Updates of the same documents by several clients in turn.
_IN_TURN = f"""
    select namespace as likes, namespace, literals_id, 2 as few, count(*) filter (other) as turns,
           count(distinct row(client_id, client_address)) as clients,
           string_agg(distinct client_id, ', ' order by client_id) as names, {evidence()}
    from (select *, coalesce(row(client_id, client_address) <> lag(row(client_id, client_address)) over (
                        partition by namespace, shape_id, literals_id order by ts), false) as other
          from {_COMMANDS} where command in ('update', 'findAndModify') and literals_id is not null)
    group by namespace, shape_id, literals_id having count(distinct row(client_id, client_address)) >= 2"""

_BY = ("client_id", "client_address", "namespace", "command")
_AGAIN = "{who}: {value} of {command} on {namespace}"
POPULATIONS = (
    Population(
        "mongo", "mongo_commands", _BY, _BY_COMMAND,
        (
            Measure("without effect", "idle", "repeated",
                    _AGAIN + " found or changed nothing, {usual} did", usual="effective",
                    ratio=9, floor=14, weight=1.3),
            Measure("single inserts", "singles", "repeated",
                    _AGAIN + " brought one document each", usual="none", floor=40),
            Measure("unacknowledged", "unacknowledged", "stalled",
                    _AGAIN + " asked for no reply", usual="none", floor=2),
            Measure("documents never tried", "untried", "stalled",
                    "{who}: {value} documents of inserts to {namespace} were "
                    "neither stored nor refused", usual="none", weight=1.5),
            Measure("sessions", "sessions", "repeated",
                    _AGAIN + " used a session each", usual="one", floor=20, samples=20,
                    weight=0.7),
            Measure("prepared again", "prepared", "repeated", _AGAIN, usual="one", floor=9, ratio=9),
            Measure("time of the server", "all_ms", "waiting",
                    _AGAIN.replace("{value}", "{samples}") + " took {value} in all",
                    unit="ms", floor=2_000, ratio=10, samples=10, likes="every"),
            Measure("upserts", "upserts", "repeated",
                    _AGAIN + " made new documents, {usual} changed one", usual="updated", ratio=4,
                    floor=14),
            Measure("commands", "commands", "repeated",
                    "{who} sent {value} {command} for {namespace}", floor=50, two=50),
            Measure("latency", "median_ms", "waiting",
                    "{who}: {command} of {namespace} takes {value}, median", unit="ms",
                    floor=10, samples=10),
            Measure("documents returned", "returned", "growing",
                    "{who}: {command} of {namespace} returns {value}, median",
                    unit="documents", floor=20, samples=5),
            Measure("reply size", "reply_bytes", "growing",
                    "{who}: replies to {command} of {namespace} have {value}, median",
                    unit="bytes", floor=5_000, samples=5),
        ),
    ),
    Population(
        "mongo", "mongo_commands", _BY, _SAME,
        (
            Measure("same question", "again", "repeated",
                    "{who} asked the same {command} of {namespace} {value} times, of {every}",
                    usual="none", floor=29, weight=0.8),
            Measure("found nothing between", "gone", "went back",
                    "{who}: the same {command} of {namespace} found documents, "
                    "nothing for {value} times, and documents again", usual="none", floor=1, weight=1.3),
        ),
        asks="count(literals_id) > 4",
    ),
    Population(
        "mongo", "mongo_commands", _BY, _growing("latency_ms"),
        (Measure("latency over time", "ended", "growing",
                 "{who}: latency of {command} on {namespace} grows from {usual} to "
                 "{value}", usual="began", unit="ms", ratio=2, floor=2, weight=1.3),),
        asks="count(*) >= 32",
    ),
    Population(
        "mongo", "mongo_commands", _BY, _growing("response_bytes"),
        (Measure("reply size over time", "ended", "growing",
                 "{who}: replies to {command} of {namespace} grow from {usual} to "
                 "{value}", usual="began", unit="bytes", ratio=2, floor=500, weight=1.3),),
        asks="count(*) >= 32",
    ),
    Population(
        "mongo", "mongo_commands", _BY, _growing("request_bytes"),
        (Measure("request size over time", "ended", "growing",
                 "{who}: {command} of {namespace} grow from {usual} to {value}",
                 usual="began", unit="bytes", ratio=2, floor=500, weight=1.3),),
        asks="count(*) >= 32",
    ),
    Population(
        "mongo", "mongo_commands", _BY, _SKIPPED,
        (Measure("latency by skip", "far_ms", "waiting",
                 "{who}: {command} of {namespace} takes {value} with high skip (up to "
                 "{farthest}), {usual} with low", usual="near_ms", unit="ms", ratio=2, floor=1, weight=1.3),),
        asks="count(*) filter (skip > 0) > 10",
    ),
    Population(
        "mongo", "mongo_commands", ("client_id", "client_address"), _HELLOS,
        (Measure("hello only", "hellos", "ended",
                 "{who} sent {value} hello and no command, to {servers}; hosts told: {hosts}",
                 usual="none", floor=2, weight=1.5),),
    ),
    Population(
        "mongo", "mongo_commands", ("client_id", "client_address", "namespace"), _CONFLICTS,
        (Measure("write conflicts", "times", "concurrent",
                 "{who} met {value} write conflicts on {namespace}; transactions there at "
                 "that time: {holders}", usual="none", floor=1, weight=1.5),),
        asks="count(*) filter (error_code = 112 or list_contains(write_error_codes, 112)) > 1",
    ),
    Population(
        "mongo", "mongo_transactions", ("client_id", "client_address"), _ONLY_READ,
        (Measure("transactions of one read", "reads", "growing", "{who} began and committed a transaction for a single "
                 "read {value} times, for more {usual} times", usual="others", ratio=4, floor=20),),
        asks="count(*) > 20",
    ),
    Population(
        "mongo", "mongo_commands", ("namespace", "names"), _IN_TURN,
        (Measure("one document in turn", "turns", "concurrent",
                 "{clients} clients update one document of {namespace} in turn, "
                 "{value} times: {names}", usual="few", ratio=2, floor=5),),
        asks="count(*) filter (command in ('update', 'findAndModify')) > 7",
    ),
)  # fmt: skip
