"""Scenarios of the rules about MongoDB."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build_mongo import (
    BY_SOME_IDS,
    MIB,
    TRANSACTION,
    alone,
    awaited,
    begun,
    command,
    connections,
    failed,
    failed_write,
    flow_row,
    get_more,
    gives_up,
    half_busy,
    hello,
    hellos_of_set,
    in_transaction,
    jumped,
    late_now_and_then,
    left_alone,
    listing,
    loop,
    of_a_set,
    only_hellos,
    opened,
    own_reads,
    pool,
    remarked,
    run,
    said_of_itself,
    seldom_slow,
    short_lives,
    slow_for_a_while,
    small_batches,
    stood_still,
    uneven,
    users,
)
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

MONGO_FIRES: list[Scenario] = [
    fires("MON101", "info", "once", **alone(command(1), command(2, took_ms=150), command(3))),
    fires("MON101", "warning", "again and again", **alone(*(command(n, took_ms=150) for n in range(5)))),
    fires("MON101", "warning", "a second", **alone(command(1, took_ms=1200))),
    fires("MON101", "info", "eleven of 2,760", **alone(*seldom_slow(2760, every=250, took_ms=160))),
    fires("MON101", "info", "seconds, but one of 300", **alone(*seldom_slow(900, every=300, took_ms=2500))),
    fires("MON101", "warning", "for some seconds of a long time", **alone(*slow_for_a_while(3000, 1500, 1580))),
    fires("MON101", "warning", "a fifth", **alone(*(command(n, took_ms=300 if n % 5 == 0 else 2) for n in range(30)))),
    fires("MON101", "info", "two of 24", **alone(*(command(n, took_ms=130 if n in {9, 20} else 2) for n in range(24)))),
    fires("MON102", "warning", "not primary", **alone(failed(1, 10107))),
    fires("MON102", "info", "a collection that is looked for", **alone(failed(1, 26, "collStats"))),
    fires("MON102", "warning", "a driver that is too old", **alone(failed(1, 352, "getnonce", opcode="OP_QUERY"))),
    fires("MON102", "info", "a single duplicate key", **alone(failed_write(1, 11000))),
    fires("MON102", "warning", "many duplicate keys", **alone(*(failed_write(n, 11000) for n in range(6)))),
    fires(
        "MON102",
        "warning",
        "the write concern",
        **alone(
            command(
                1,
                "insert",
                status="error",
                error_code=64,
                write_concern_error_code=64,
                write_concern_error_name="WriteConcernTimeout",
            )
        ),
    ),
    fires("MON102", "info", "a command that the server does not know", **alone(failed(1, 59, "frobnicate"))),
    fires(
        "MON102",
        "warning",
        "a conflict that nobody retries",
        **alone(begun(1, status="error", ok=False, error_code=112)),
    ),
    fires(
        "MON102",
        "info",
        "a conflict that is retried",
        **alone(
            failed(1, 112, **TRANSACTION),
            begun(2, 2),
            in_transaction(3, 2, "commitTransaction", collection=None),
        ),
    ),
    fires("MON103", "warning", "the server closes", **alone(command(1, took_ms=None), end=1.1, closed_by="server")),
    fires("MON103", "warning", "the client gives up", **alone(command(1, took_ms=None), end=21, closed_by="client")),
    fires("MON103", "info", "the client leaves", **alone(command(1, took_ms=None), end=1.1, closed_by="client")),
    fires("MON103", "warning", "a time-out of 300 ms, each time", **gives_up(6)),
    fires("MON103", "warning", "the replies come into closed sockets", **gives_up(6, took_ms=900)),
    fires("MON103", "warning", "still waiting", **alone(command(1, took_ms=None), end=40)),
    fires("MON103", "info", "bytes are missing", **alone(command(1, took_ms=None), end=40, gap_bytes=100)),
    fires("MON104", "warning", "idle for long", **alone(opened(1), command(2), end=700)),
    fires("MON104", "warning", "for ever", **alone(opened(1, no_cursor_timeout=True), end=3, closed_by="client")),
    fires("MON104", "info", "open at the close", **alone(opened(1), get_more(2), end=3, closed_by="client")),
    fires("MON104", "info", "idle, but bytes are missing", **alone(opened(1), end=700, gap_bytes=9)),
    fires("MON104", "warning", "more and more of them", **left_alone(25, 1.5)),
    fires(
        "MON104",
        "warning",
        "more and more of them, until the program ended",
        **(left_alone(25, 1.5) | {"flows": [flow_row(end=60, closed_by="client")]}),
    ),
    fires(
        "MON104",
        "info",
        "more and more, but bytes are missing",
        **(left_alone(25, 1.5) | {"flows": [flow_row(end=60, gap_bytes=9)]}),
    ),
    fires("MON105", "warning", "one by one", **alone(*run(25))),
    fires(
        "MON105",
        "warning",
        "two queries for each row",
        **alone(
            *run(25),
            *(command(1.005 + n / 100, collection="items", shape_id="other", literals_id="1") for n in range(24)),
        ),
    ),
    fires(
        "MON105",
        "warning",
        "twice, behind lists of other lengths",
        **alone(
            listing(0.98, 40), *loop(40, 0.4, 2), listing(8.98, 22), *loop(22, 0.4, 2, start=9, app_name="billing")
        ),
    ),
    fires("MON105", "warning", "on a busy host", **alone(*uneven(60))),
    fires("MON105", "warning", "far from the server", **alone(*loop(25, 120, 3))),
    fires("MON105", "warning", "a pool that takes turns", **alone(*loop(40, 0.4, 0.3, flows="abcde"))),
    fires("MON105", "warning", "one value in each $in", **alone(*loop(40, 0.4, 0.3, query_shape=BY_SOME_IDS))),
    fires(
        "MON105",
        "warning",
        "slow work with each row of a list",
        **alone(listing(0.98, 101), *loop(90, 0.4, 15)),
    ),
    fires(
        "MON105",
        "warning",
        "a burst over the pool, behind a list",
        **alone(
            listing(0.99, 30),
            *(
                command(1 + n / 5000, "find", 20, f"p{n % 10}", literals_id=f"{n:08x}", documents_returned=1)
                for n in range(30)
            ),
        ),
    ),
    fires("MON105", "warning", "small batches", **alone(*small_batches(25))),
    fires("MON106", "warning", "an error", **alone(awaited(1, status="error", ok=False, error_code=91))),
    fires("MON106", "warning", "no answer", **alone(hello(0), awaited(1, None), end=40)),
    fires("MON106", "warning", "no further answer", **alone(hello(0), awaited(1), end=40)),
    fires("MON107", "warning", "a storm", **connections([3, 2, 3, 2, 3, 40, 2])),
    fires("MON107", "warning", "a storm, and a clock that jumps by centuries", **jumped([3, 2, 3, 2, 3, 40, 2])),
    fires("MON107", "warning", "a client for each request", **short_lives(25, 0.2)),
    fires("MON107", "warning", "a client for each request, some at once", **short_lives(40, 0.02, 0.1, work=2)),
    fires("MON108", "warning", "checksum", **remarked("checksum_wrong")),
    fires("MON108", "warning", "a bomb", **remarked("decompression_limit", group="limit")),
    fires("MON108", "info", "our limit", **remarked("decompression_limit", "warn", group="limit")),
    fires("MON108", "warning", "from the server", **remarked("unknown_required_flag", direction="server_to_client")),
    fires(
        "MON109",
        "info",
        "refused",
        **alone(hello(1, compressors_offered="snappy,zlib"), command(2, compressors_offered="snappy,zlib")),
    ),
    fires(
        "MON109",
        "info",
        "agreed and not used",
        **alone(*(command(n, compressors_offered="zstd", compressors_agreed="zstd") for n in range(6))),
    ),
    fires("MON109", "info", "a password", **alone(command(1, "saslStart", compressor="snappy", collection=None))),
    fires("MON110", "info", "OP_QUERY", **alone(command(1, opcode="OP_QUERY"))),
    fires(
        "MON110",
        "info",
        "OP_QUERY of a server that says it is 5.0",
        **alone(hello(0.5, flow="b", max_wire_version=13, server_role="standalone"), command(1, opcode="OP_QUERY")),
    ),
    fires(
        "MON110",
        "info",
        "OP_INSERT at 5.1, which nobody answers",
        **alone(
            hello(0.5, flow="b", max_wire_version=14, server_role="standalone"),
            command(1, "insert", None, opcode="OP_INSERT", status="one_way"),
        ),
    ),
    fires("MON110", "info", "OP_INSERT", **alone(command(1, "insert", None, opcode="OP_INSERT", status="one_way"))),
    fires("MON111", "warning", "longer than the server allows", **alone(begun(1), in_transaction(2), end=70)),
    fires(
        "MON111",
        "warning",
        "a flood of them is one finding",
        **alone(*(begun(1 + n / 10, n + 1, lsid=f"s{n}") for n in range(40)), end=70),
    ),
    fires("MON111", "info", "open at the close", **alone(begun(1), end=3, closed_by="client")),
    fires("MON111", "info", "open, but bytes are missing", **alone(begun(1), end=70, gap_bytes=9)),
    fires(
        "MON112",
        "info",
        "the answer got lost",
        mongo_commands=[
            command(1, "update", lsid="s1", txn_number=3),
            command(2, "update", lsid="s1", txn_number=3, flow="b"),
        ],
    ),
    fires("MON114", "warning", "four connections for many callers", **alone(*pool(4, 90, 0.4, 14))),
    fires("MON114", "warning", "72 % busy, and handed on in between", **alone(*pool(4, 9, 3.5, 14))),
    fires("MON114", "warning", "on a busy host", **alone(*late_now_and_then(4, 60, 16))),
    fires("MON114", "warning", "on a host without time to spare", **alone(*late_now_and_then(4, 60, 16, one_of=5))),
    fires("MON117", "warning", "names that nobody resolves", **only_hellos(4)),
    fires(
        "MON117",
        "warning",
        "of an application without a name, while others of its address work",
        **only_hellos(
            4,
            work=[
                command(30, app_name="shop"),
                *(row | {"app_name": None, "driver": None} for row in only_hellos(4)["mongo_commands"]),
            ],
        ),
    ),
    fires(
        "MON117",
        "warning",
        "an address that does not answer",
        **only_hellos(4, "10.9.9.9:27017", more=[flow_row("s", server_address="10.9.9.9", handshake="unanswered")]),
    ),
    fires("MON116", "warning", "for three seconds", **alone(*stood_still(3))),
    fires("MON116", "warning", "for an application with one shape, beside another", **alone(*stood_still(3, "ab"))),
    fires("MON115", "warning", "reads a moment after the write", **alone(*own_reads(3, 0.02))),
    fires("MON115", "info", "one read a moment after the write", **alone(*own_reads(1, 0.02))),
    fires(
        "MON115",
        "warning",
        "the hello of the secondary is not in the capture",
        **alone(*own_reads(3, 0.02, server_role=None, read_preference="secondaryPreferred")),
    ),
    fires(
        "MON115",
        "warning",
        "another connection was told that it is a secondary",
        **alone(*own_reads(3, 0.02, server_role=None), said_of_itself("secondary")),
    ),
    fires(
        "MON114",
        "warning",
        "a clock that jumps by centuries",
        **alone(*pool(4, 90, 0.4, 14), command(4e9, "ping", flow="z"), end=4e9),
    ),
    fires(
        "MON113",
        "info",
        "all fields",
        **alone(command(1, response_bytes=3 * MIB, documents_returned=2000, has_projection=False)),
    ),
]

MONGO_NEAR_MISSES: list[Scenario] = [
    silent("MON101", "100 ms", **alone(*(command(n, took_ms=100) for n in range(30)))),
    silent("MON101", "waits for news", **alone(opened(1, tailable=True), get_more(2, 500), get_more(3, 900))),
    silent("MON101", "waits as long as it is told", **alone(get_more(2, 500, await_time_ms=500))),
    silent("MON101", "has waited in vain", **alone(get_more(2, 1000, documents_returned=0))),
    silent("MON101", "authentication is slow on purpose", **alone(command(1, "saslContinue", 300, collection=None))),
    silent("MON101", "goodbye", **alone(command(1, "endSessions", 4000), command(2, "killCursors", 4000))),
    silent("MON101", "an awaitable hello", **alone(awaited(1, 9000), end=12)),
    silent("MON102", "questions about the server", **alone(*(failed(n, 59, "atlasVersion") for n in range(9)))),
    silent("MON102", "a goodbye that the server does not know", **alone(failed(1, 59, "endSessions"))),
    silent("MON102", "what is there already", **alone(failed(1, 48, "create"), failed(2, 68, "createIndexes"))),
    silent("MON102", "what is gone already", **alone(*(failed(n, 26, "drop") for n in range(9)))),
    silent(
        "MON102",
        "a transaction that is begun again when its primary steps down",
        ("MON102", "info"),
        **alone(
            failed(1, 10107, **TRANSACTION, error_labels="TransientTransactionError"),
            begun(2, 2),
            in_transaction(3, 2, "commitTransaction", collection=None),
        ),
    ),
    silent(
        "MON102",
        "a commit that is sent again",
        ("MON102", "info"),
        **alone(
            begun(1),
            in_transaction(
                2,
                1,
                "commitTransaction",
                collection=None,
                status="error",
                ok=False,
                error_code=11600,
                error_labels="UnknownTransactionCommitResult",
            ),
            in_transaction(3, 1, "commitTransaction", collection=None),
        ),
    ),
    silent("MON102", "success", **alone(command(1), command(2, "insert", n=1))),
    silent("MON103", "the capture ends", **alone(command(80, took_ms=None))),
    silent("MON103", "longer is allowed", **alone(command(1, took_ms=None, max_time_ms=120_000))),
    silent("MON103", "four times as long is no pattern", ("MON103", "info"), **gives_up(4)),
    silent("MON103", "a client that leaves at any time", ("MON103", "info"), **gives_up(6, spread_s=0.1)),
    silent("MON103", "the reply came before it closed", **gives_up(6, took_ms=80)),
    silent("MON103", "goodbye", **alone(command(1, "endSessions", None), end=1.1, closed_by="client")),
    silent("MON103", "no reply is wanted", **alone(command(1, "insert", None, status="one_way"))),
    silent(
        "MON103",
        "waits for news",
        ("MON104", "info"),
        **alone(get_more(1, None, await_time_ms=1000), end=1.5, closed_by="client"),
    ),
    silent("MON103", "answers are not captured", **alone(command(1, took_ms=None), bytes_to_client=0)),
    silent("MON104", "read to its end", **alone(opened(1), get_more(2, cursor_exhausted=True), end=900)),
    silent("MON104", "killed", **alone(opened(1), command(2, "killCursors", cursors_killed=[77]), end=900)),
    silent("MON104", "open and in use", **alone(opened(1), end=500)),
    silent(
        "MON104", "used on another connection", **alone(opened(1), get_more(2, flow="b"), end=5, closed_by="client")
    ),
    silent("MON104", "19 of them", **left_alone(19, 1.5)),
    silent("MON104", "opened at once", **left_alone(40, 0.01)),
    silent("MON104", "in use a moment ago", **left_alone(25, 0.3, end=15)),
    silent("MON105", "19 in a second", **alone(*run(19), *run(19, start=3))),
    silent("MON105", "a program that sleeps in between", **alone(*loop(900, 1, 20))),
    silent(
        "MON105",
        "many users, and lists of rows now and then",
        **alone(
            *sorted((*users(3000, 100, 2), *(listing(1 + n * 0.97, 50) for n in range(30))), key=lambda row: row["ts"])
        ),
    ),
    silent("MON105", "many users", **alone(*users(3000, 100, 2))),
    silent("MON105", "many users of a fast server", **alone(*users(3000, 500, 0.4))),
    silent("MON105", "very many users", **alone(*users(3000, 3000, 0.8))),
    silent("MON105", "many users far away", **alone(*users(1000, 20, 60))),
    silent(
        "MON105",
        "each page of a list, and one of its rows",
        **alone(
            *(
                row
                for n in range(30)
                for row in (listing(1 + n, 25), command(1.01 + n, literals_id=f"{n:08x}", documents_returned=1))
            )
        ),
    ),
    silent(
        "MON105",
        "lists put together with one $in for each",
        **alone(
            *(
                row
                for n in range(30)
                for row in (
                    listing(1 + n / 100, 50),
                    command(1.003 + n / 100, query_shape=BY_SOME_IDS, literals_id=f"{n:08x}", documents_returned=50),
                )
            )
        ),
    ),
    silent(
        "MON105",
        "page after page of a collection",
        **alone(*loop(60, 3, 0.5, documents_returned=500)),
    ),
    silent(
        "MON105",
        "many that begin at once",
        **alone(
            *(
                command(1 + n / 5000, "find", 20, f"p{n}", literals_id=f"{n:08x}", documents_returned=1)
                for n in range(60)
            )
        ),
    ),
    silent(
        "MON105",
        "connections of the same host that began before the capture",
        **alone(*run(25), command(0.5, flow="b", app_name=None, driver=None)),
    ),
    silent("MON105", "the same value", **alone(*run(40, literals_id="0000000a"))),
    silent("MON105", "spread over a minute", **alone(*run(40, every=1.5))),
    silent(
        "MON105",
        "one of many shapes on a busy connection",
        **alone(*run(25), *(command(1 + n / 300, shape_id=f"s{n % 7}") for n in range(72))),
    ),
    silent(
        "MON105",
        "a connection whose hello is not in the capture, beside those of the application that asks the same",
        **alone(
            *(row | {"app_name": None, "driver": None} for row in run(25)),
            *(command(0.5 + n, flow="b", literals_id=f"{n:08x}", shape_id=run(1)[0]["shape_id"]) for n in range(5)),
        ),
    ),
    silent("MON105", "good batches", **alone(*small_batches(40, documents_returned=101))),
    silent(
        "MON105",
        "a tailable cursor",
        **alone(opened(1, tailable=True), *(get_more(2 + n / 10, documents_returned=1) for n in range(60))),
    ),
    silent("MON106", "goes on until the client closes", **alone(awaited(1, replies=9), end=8, closed_by="client")),
    silent("MON106", "answers are not captured", **alone(hello(0), awaited(1, None), end=40, bytes_to_client=0)),
    silent("MON106", "the server stops", **alone(awaited(1), end=60, closed_by="server")),
    silent("MON106", "polls afterwards", **alone(awaited(1), hello(20), end=60)),
    silent("MON107", "a pool fills at the start", **connections([50, 2, 3, 2, 3, 2])),
    silent("MON107", "busy all the time", **connections([30, 30, 60, 30, 30, 90])),
    silent("MON107", "too short to know", **connections([2, 40, 1])),
    silent("MON107", "nineteen short ones", **short_lives(19, 0.2)),
    silent("MON107", "a client that gives up each time", ("MON103", "warning"), **gives_up(30)),
    silent("MON107", "a client that gives up before the replies", ("MON103", "warning"), **gives_up(30, took_ms=900)),
    silent("MON107", "each does some work", **short_lives(40, 0.2, work=3)),
    silent("MON107", "they live for longer", **short_lives(40, 0.2, lasts=6)),
    silent("MON107", "a tool that asks every five seconds", **short_lives(40, 5)),
    silent("MON107", "a pool that ends with its program", **short_lives(60, 0.001, lasts=2)),
    silent("MON107", "watching the server", **short_lives(40, 0.2, work=0)),
    silent("MON108", "a bit that may be ignored", **remarked("unknown_optional_flag", "note")),
    silent("MON108", "the remark on another protocol", expert_infos=remarked("checksum_wrong")["expert_infos"]),
    silent("MON109", "wants none", **alone(hello(1, compressors_offered="none"))),
    silent(
        "MON109",
        "only the handshake is plain",
        **alone(
            hello(1, compressors_offered="zstd", compressors_agreed="zstd"),
            *(
                command(n, compressors_offered="zstd", compressors_agreed="zstd", compressor="zstd")
                for n in range(2, 12)
            ),
        ),
    ),
    silent("MON110", "the first hello", **alone(hello(1, opcode="OP_QUERY", command="isMaster"))),
    silent(
        "MON110",
        "a server that says it is 5.1 and answers it",
        **alone(hello(0.5, flow="b", max_wire_version=14, server_role="standalone"), command(1, opcode="OP_QUERY")),
    ),
    silent("MON110", "the server refuses it already", **alone(failed(1, 352, opcode="OP_QUERY"))),
    silent("MON111", "committed", **alone(begun(1), in_transaction(2, name="commitTransaction"), end=200)),
    silent("MON111", "aborted", **alone(begun(1), in_transaction(2, name="abortTransaction"), end=200)),
    silent("MON111", "just begun", **alone(begun(90))),
    silent("MON112", "two writes", mongo_commands=[command(n, "update", lsid="s1", txn_number=n) for n in (1, 2)]),
    silent("MON112", "a transaction", mongo_commands=[begun(1), in_transaction(2), in_transaction(3)]),
    silent(
        "MON112",
        "a router passes it on to two shards",
        mongo_commands=[
            command(1, "update", lsid="s1", txn_number=3),
            command(1.001, "update", lsid="s1", txn_number=3, flow="b", server_address="10.3.0.10"),
        ],
    ),
    silent("MON113", "one MiB", **alone(command(1, response_bytes=MIB))),
    silent("MON117", "two connections", **only_hellos(2)),
    silent("MON117", "it advertises itself as well", **only_hellos(5, "mongo-1:27017,10.3.0.9:27017")),
    silent("MON117", "a direct connection works", **only_hellos(5, work=[command(30, flow="w")])),
    silent("MON117", "it works at another member", **only_hellos(5, work=[command(30, server_address="10.3.0.10")])),
    silent("MON117", "a monitor that stays and waits for news", **only_hellos(5, work=[awaited(30, flow="m")])),
    silent(
        "MON117", "a probe that asks by hello, in a session", **only_hellos(5, work=[hello(30, flow="w", lsid="s")])
    ),
    silent("MON117", "one connection that says hello again and again", **alone(*hellos_of_set(9))),
    silent(
        "MON117",
        "its connection to an advertised host stands",
        **only_hellos(5, "10.9.9.9:27017", more=[flow_row("s", server_address="10.9.9.9", handshake=None)]),
    ),
    silent("MON117", "a server alone", **only_hellos(5, None)),
    silent(
        "MON117",
        "it advertised others before, and itself while the client asked",
        **only_hellos(5, "10.3.0.9:27017", work=[of_a_set(0.5, "mongo-0:27017")]),
    ),
    silent("MON116", "for less than a second", ("MON101", "info"), **alone(*stood_still(0.9))),
    silent("MON116", "one connection alone", **alone(*stood_still(3, "a"))),
    silent("MON116", "one shape of one application", **alone(*stood_still(3, "ab", name="find", app_name="billing"))),
    silent("MON116", "others are answered", **alone(*stood_still(3), *loop(400, 5, 5, start=5))),
    silent("MON116", "what takes long anyway", **alone(*stood_still(3, usual_ms=900))),
    silent("MON116", "the capture stood still", **alone(*(row for row in stood_still(3) if row["latency_ms"] < 100))),
    silent("MON101", "what waited while the server stood still", ("MON116", "warning"), **alone(*stood_still(3))),
    silent("MON115", "found", **alone(*own_reads(3, 0.02, documents_returned=1))),
    silent("MON115", "six seconds later", **alone(*own_reads(3, 6))),
    silent("MON115", "of another application", **alone(*own_reads(3, 0.02, app_name="reports"))),
    silent("MON115", "another document", **alone(*own_reads(3, 0.02, document_ids=[99]))),
    silent("MON115", "not at a secondary", **alone(*own_reads(3, 0.02, server_role="mongos"))),
    silent(
        "MON115",
        "the nearest member is the primary, as another connection was told",
        **alone(*own_reads(3, 0.02, server_role=None, read_preference="nearest"), said_of_itself("primary")),
    ),
    silent("MON115", "nobody knows what it is", **alone(*own_reads(3, 0.02, server_role=None))),
    silent("MON115", "at the same member", **alone(*own_reads(3, 0.02, server_address="10.3.0.9"))),
    silent(
        "MON115",
        "deleted in between",
        **alone(*own_reads(3, 0.02), *(command(n + 0.01, "delete", 1, flow="b", n=1) for n in range(1, 4))),
    ),
    silent("MON115", "refused", **alone(*own_reads(3, 0.02, insert={"status": "error", "error_code": 64}))),
    silent("MON114", "one connection", **alone(*pool(1, 90, 0.4, 14))),
    silent("MON114", "nine seconds", **alone(*pool(4, 90, 0.4, 9))),
    silent("MON114", "a pause after each answer", **alone(*pool(4, 95, 6, 30))),
    silent("MON114", "a pause after each three answers", **alone(*late_now_and_then(4, 60, 30, one_of=3))),
    silent("MON114", "pauses of more than half an answer", **alone(*pool(4, 9, 4.9, 30))),
    silent("MON114", "threads with quick lookups one after the other", **alone(*pool(4, 1, 0.4, 30))),
    silent("MON114", "users who come by themselves to a pool that is half busy", **alone(*half_busy(4, 10, 30))),
    silent(
        "MON114",
        "one connection more that rests",
        **alone(*pool(4, 90, 0.4, 14), *(command(n, "ping", flow="z") for n in range(1, 16))),
    ),
    silent(
        "MON114",
        "an export",
        **alone(
            *(row | {"command": "getMore", "cursor_id": 7, "documents_returned": 900} for row in pool(4, 90, 0.4, 14))
        ),
    ),
    silent("MON113", "many answers", **alone(command(1, response_bytes=4 * MIB, replies=8, exhaust=True))),
]
