"""What only looks as if records were skipped, read again or never committed."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import (
    commit,
    fetch,
    flow,
    group_event,
    remark,
    simple_commit,
    stored,
)
from tests.analyser.engine.rules.scenarios.build_offsets import (
    READ,
    STORED,
    anew,
    at_rest,
    changed,
    epoch_end,
    joined,
    listed,
    overlapping,
    poisoned,
    produced,
    read,
    restarted,
    taken_over,
    takes_over,
    went_ahead,
)
from tests.analyser.engine.rules.scenarios.scenario import Scenario, silent

# A consumer without membership: a job that assigns itself a partition and commits.
JOB = {"client_id": "billing-1", "client_address": "10.1.0.1", "flow_id": "flow1"}

KAFKA_OFFSETS_NEAR_MISSES: list[Scenario] = [
    silent(
        "KAF109", "commits every few seconds",
        **joined(
            kafka_offset_commits=[commit(n * 5, n * 500) for n in range(1, 9)],
            kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100) for n in range(42)],
        ),
    ),
    silent(
        "KAF120", "the answer in between is missing",
        **joined(kafka_fetch_partitions=[*READ, fetch(3, 500, ts_response=None), read(4, 900, 950)]),
    ),
    silent(
        "KAF120", "bytes of the client are missing in between",
        **joined(
            flows=[flow("a")],
            expert_infos=[remark("a", 3, "tcp", "gap")],
            kafka_fetch_partitions=[*READ, read(4, 900, 950)],
        ),
    ),
    silent(
        "KAF120", "fetched ahead and dropped: it fetches again what was not handled",
        **joined(kafka_offset_commits=[commit(1.5, 200)], kafka_fetch_partitions=[*READ, read(4, 280, 600)]),
    ),
    silent(
        "KAF120", "paused and resumed: its next commit is of where it began again",
        **went_ahead(commit(6, 212), *(commit(n, 30 * n, partition=1) for n in range(6, 10)), commit(10, 260)),
    ),
    silent(
        "KAF120", "paused and resumed while a worker has what lies between",
        **went_ahead(*(commit(n, 30 * n, partition=1) for n in range(6, 10)), commit(10, 190)),
    ),
    silent(
        "KAF120", "paused and resumed: it commits this partition seldom",
        **went_ahead(*(commit(n, 30 * n, partition=1) for n in range(6, 10)), commit(10, 260), both=False),
    ),
    silent(
        "KAF120", "paused and resumed: two commits of another partition prove nothing",
        **went_ahead(*(commit(n, 30 * n, partition=1) for n in (6, 7)), commit(8, 260)),
    ),
    silent(
        "KAF120", "an answer of which no batch could be read leads nobody knows where",
        **joined(kafka_fetch_partitions=[read(1, 0, records_bytes=5000), read(2, 168, 200)]),
    ),
    silent(
        "KAF120", "a topic without a known name may have been told an offset",
        **joined(
            kafka_fetch_partitions=[read(n, o, o + 100, topic=None, topic_id="id") for n, o in ((1, 0), (2, 500))]
        ),
    ),
    silent(
        "KAF122", "four times the same 400 records: what comes again counts once",
        **joined(kafka_fetch_partitions=[read(n * 10, 0, 400, flow_id=f"f{n}") for n in range(1, 5)]),
    ),
    silent(
        "KAF122", "a producer commits in its transactions what the consumer reads",
        **joined(
            kafka_offset_commits=[
                commit(n, n * 100, api="TxnOffsetCommit", client_id="billing-1-producer") for n in range(1, 12)
            ],
            kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100) for n in range(12)],
        ),
    ),
    silent(
        "KAF122", "a client without group requests in the capture",
        kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100, client_id="tool") for n in range(12)],
    ),
    silent(
        "KAF122", "another member commits ten times, and this one was given less than what that commits at once",
        **joined(
            kafka_offset_commits=[commit(n * 2 + 0.5, n * 20 + 20, "m2", partition=1) for n in range(10)],
            kafka_fetch_partitions=[
                row for n in range(20) for row in (
                    read(n, max(n - 1, 0), n), read(n, n * 10, n * 10 + 10, partition=1, member="m2"),
                )
            ],
        ),
    ),
    silent("KAF122", "a member takes over, and commits, too", **takes_over(commit(12, 140))),
    silent("KAF122", "a member took over three commits ago", **takes_over(until=14)),
    silent(
        "KAF122", "a quiet topic",
        **joined(kafka_fetch_partitions=[read(n, 100) for n in range(0, 90, 3)]),
    ),
    silent("KAF123", "fifty in a second, each of many records",
           kafka_offset_commits=[commit(n / 100, 1000 + n * 7) for n in range(400)]),
    silent("KAF123", "one record at a time, once a second",
           kafka_offset_commits=[commit(n, 1000 + n) for n in range(300)]),
    silent("KAF124", "restarts go on where reading had ended", **restarted(4, 0)),
    silent(
        "KAF124", "one rebalance while a record of each partition is under way",
        **joined(
            kafka_offset_commits=[commit(3, 499, partition=n) for n in range(4)],
            kafka_offset_fetches=[stored(9, 499, "m2", partition=n) for n in range(4)],
            kafka_fetch_partitions=[
                *(row | {"partition": n} for n in range(4) for row in READ),
                *(read(10, 499, 600, "m2", partition=n) for n in range(4)),
            ],
        ),
    ),
    silent("KAF124", "restarts with a few records left", **restarted(4, 3)),
    silent("KAF131", "back to the log's start twice", **anew(2)),
    silent("KAF131", "back, but not to the log's start", **anew(4, to=40)),
    silent(
        "KAF131", "nothing was committed",
        **{name: rows for name, rows in anew(4).items() if name != "kafka_offset_commits"},
    ),
    silent("KAF133", "nine times", **overlapping(9, 1)),
    silent("KAF133", "twice as many as it came further", **overlapping(20, 50)),
    silent("KAF133", "it goes on where the records end", **overlapping(20, 100)),
    silent("KAF133", "one record that fails again and again", **overlapping(20, 0)),
    silent("KAF124", "commits at the log's end", **at_rest(0)),
    silent("KAF124", "commits two below the log's end", **at_rest(2)),
    silent("KAF124", "one below in seven commits", **at_rest(1, every=4)),
    silent("KAF124", "one below, where transactions write markers", **at_rest(1, transactional=True)),
    silent(
        "KAF124", "markers of transactions take an offset each",
        **restarted(4, 1), kafka_produce_batches=produced(True),
    ),
    silent(
        "KAF125", "a partition that does not grow",
        **joined(
            kafka_offset_commits=[commit(n, n * 10, partition=1) for n in range(1, 60)],
            kafka_fetch_partitions=[
                read(1, 0, 80, high_watermark=80),
                *(read(n, n * 10, n * 10 + 10, partition=1, high_watermark=n * 10) for n in range(60)),
            ],
        ),
    ),
    silent(
        "KAF125", "what was fetched is handled slowly: its commits rise",
        **joined(
            kafka_offset_commits=[
                row for n in range(1, 60) for row in (commit(n, n), commit(n, n * 10, partition=1))
            ],
            kafka_fetch_partitions=[
                read(1, 0, 80), *(read(n, n * 10, n * 10 + 10, partition=1, high_watermark=n * 10) for n in range(60)),
                read(59, 700, high_watermark=800, client_id="other", client_address="10.1.0.9"),
            ],
        ),
    ),
    silent(
        "KAF127", "a commit that was under way in the rebalance",
        **taken_over(commit(10.5, 500, error_code=25), back=11),
    ),
    silent(
        "KAF127", "the partition comes back to its member",
        **{
            **taken_over(commit(20, 650)),
            "kafka_offset_fetches": [stored(9, 300, "m2"), stored(14, 600)],
            "kafka_fetch_partitions": [*READ, read(10, 300, 600, "m2"), read(15, 600, 650)],
        },
    ),
    silent(
        "KAF129", "a refused commit is sent again at once",
        kafka_offset_commits=[commit(1, 300, error_code=16), commit(1.2, 300), commit(5, 500)],
    ),
    silent(
        "KAF129", "a coordinator that moved refused it, and the next commits make it good", ("KAF129", "info"),
        ("KAF103", "info"),
        kafka_offset_commits=[
            commit(1, 300, error_code=14), commit(2, 500), commit(2.1, 300), commit(3, 600),
        ],
        kafka_fetch_partitions=[read(1.5, 490, 500)],
    ),
    silent(
        "KAF129", "the client turned back and works up to the same offset again", ("KAF103", "info"),
        kafka_offset_commits=[commit(1, 300, error_code=25), commit(5, 500), commit(9, 300)],
        kafka_fetch_partitions=[read(4, 490, 500), read(7, 200, 300)],
    ),
    silent(
        "KAF119", "two processes with one static name fence each other, and each reads the record again",
        **{
            **poisoned(0),
            "kafka_group_events": [
                group_event(0, "join", "m1", member_id="m1-0"),
                *(
                    row for n in range(1, 5) for row in (
                        group_event(n * 10, "heartbeat", "m1", member_id=f"m1-{n - 1}", error_code=82),
                        group_event(n * 10 + 1, "join", "m1", member_id=f"m1-{n}"),
                    )
                ),
            ],
            "kafka_fetch_partitions": [read(0.2, 0, 100), *(read(n * 10 + 3, 48, 100 + n) for n in range(1, 5))],
        },
    ),
    silent("KAF119", "a record that took too long once", **poisoned(1, "consumer poll timeout has expired.")),
    silent(
        "KAF119", "a member that is restarted again and again has a new connection each time",
        **{
            **poisoned(0),
            "kafka_group_events": [
                row for n in range(5) for row in (
                    group_event(n * 10, "join", "m1", member_id=f"m1-{n}", flow_id=f"f{n}"),
                    group_event(n * 10 + 9, "leave", "m1", member_id=f"m1-{n}", flow_id=f"f{n}"),
                )
            ],
            "kafka_offset_fetches": [stored(n * 10 + 2, 48) for n in range(1, 5)],
            "kafka_fetch_partitions": [read(0.2, 0, 100), *(read(n * 10 + 3, 48, 100 + n) for n in range(1, 5))],
        },
    ),
    silent(
        "KAF119", "thrown out while nothing new is there: no record comes again",
        **{
            **poisoned(4),
            "kafka_fetch_partitions": [read(0.2, 0, 48), *(read(n * 10 + 3, 48) for n in range(1, 5))],
        },
    ),
    silent(
        "KAF120", "the client asks for the beginning (seekToBeginning), which is there no more a moment later",
        ("KAF121", "critical"),
        **joined(
            kafka_offset_commits=STORED,
            kafka_list_offsets=[listed(5, -2, 600), listed(5.2, -2, 650)],
            kafka_fetch_partitions=[
                *READ, read(5.1, 600, error_code=1), read(5.3, 650, 700, log_start_offset=650),
            ],
        ),
    ),
    silent(
        "KAF120", "records are missing in a compacted log: a batch ends further on than its records count",
        **joined(
            kafka_offset_commits=[commit(3.5, 990)],
            kafka_fetch_partitions=[
                read(1, 0, 400, records_count=3), read(2, 400, 980, records_count=1), read(3, 980, 990),
            ],
        ),
    ),
    silent(
        "KAF120", "the reader goes back to where its epoch ends, and commits nothing from there",
        **joined(
            kafka_offset_commits=STORED,
            kafka_leader_epochs=[epoch_end(4.5, 300)],
            kafka_fetch_partitions=[*READ, read(5, 300, 350, high_watermark=350)],
        ),
    ),
    silent(
        "KAF103", "a seek after the epoch was found to end where the reader was", ("KAF103", "info"),
        **joined(
            kafka_offset_commits=[*STORED, commit(6, 350)],
            kafka_leader_epochs=[epoch_end(4.5, 500)],
            kafka_list_offsets=[listed(4.7, -2, 300)],
            kafka_fetch_partitions=[*READ, read(5, 300, 350)],
        ),
    ),
    silent(
        "KAF103", "a tool's reset is written over by a job that goes on", ("KAF103", "info"), ("KAF309", "info"),
        kafka_offset_commits=[
                *(simple_commit(n, n * 100, **JOB) for n in range(1, 6)), simple_commit(5.5, 0),
                *(simple_commit(n, n * 100, **JOB) for n in range(6, 9)),
            ],
            kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100) for n in range(9)],
    ),
    silent(
        "KAF103", "and so is one to a later offset: the job is not stale", ("KAF103", "info"), ("KAF309", "info"),
        kafka_offset_commits=[
                *(simple_commit(n, n * 100, **JOB) for n in range(1, 6)), simple_commit(5.5, 5000),
                *(simple_commit(n, n * 100, **JOB) for n in range(6, 9)),
            ],
            kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100) for n in range(9)],
    ),
    silent(
        "KAF103", "a tool resets the same partition twice: it reads nothing of it", ("KAF103", "info"),
        ("KAF101", "info"),
        kafka_offset_commits=[
                *(simple_commit(n, n * 100, **JOB) for n in range(1, 6)), simple_commit(5.3, 200),
                simple_commit(5.6, 0), *(simple_commit(n, n * 100, **JOB) for n in range(6, 9)),
            ],
            kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100) for n in range(9)],
    ),
    silent(
        "KAF121", "a reader begins elsewhere than its group's offset, which was stored before the capture",
        **joined(
            kafka_offset_fetches=[stored(0.5, 500)],
            kafka_list_offsets=[listed(0.6, -1, 900)],
            kafka_fetch_partitions=[read(1, 900, 950)],
        ),
    ),
    silent(
        "KAF121", "a group that is new begins at latest",
        **joined(
            kafka_offset_fetches=[stored(0.5, -1)],
            kafka_list_offsets=[listed(0.6, -1, 900)],
            kafka_fetch_partitions=[read(1, 900, 950)],
        ),
    ),
    silent(
        "KAF121", "a restart goes on at the stored offset",
        **joined(
            kafka_offset_commits=STORED,
            kafka_offset_fetches=[stored(6, 500)],
            kafka_fetch_partitions=[*READ, read(7, 500, 600, flow_id="new")],
        ),
    ),
    silent(
        "KAF121", "the capture begins in the middle of reading",
        **joined(kafka_offset_commits=[commit(0.5, 300)], kafka_fetch_partitions=[read(1, 500, 600)]),
    ),
    silent(
        "KAF121", "a commit of another member is not in the capture",
        **joined(
            kafka_offset_commits=STORED,
            kafka_offset_fetches=[stored(60, 900)],
            kafka_fetch_partitions=[*READ, read(61, 900, 950)],
        ),
    ),
    silent(
        "KAF121", "another member of the group had read the records",
        **joined(
            kafka_offset_commits=STORED,
            kafka_offset_fetches=[stored(6, 500)],
            kafka_fetch_partitions=[*READ, read(4, 500, 900, "m2"), read(7, 900, 950)],
        ),
    ),
    silent(
        "KAF121", "one direction of the capture is missing",
        **joined(
            kafka_offset_commits=[commit(3, 500, error_code=None, ts_response=None)],
            kafka_fetch_partitions=[
                fetch(n, n * 300, ts_response=None, high_watermark=None) for n in range(1, 5)
            ],
        ),
    ),
    silent(
        "KAF121", "the leader moves to another broker, and reading goes on there",
        **joined(
            kafka_offset_commits=[commit(1.5, 300)],
            kafka_fetch_partitions=[*READ, read(7, 500, 600, flow_id="broker2")],
        ),
    ),
    silent(
        "KAF114", "fetched and not yet stored when it was taken over",
        **joined(
            kafka_offset_commits=[commit(3, 300)],
            kafka_offset_fetches=[stored(6, 300, "m2")],
            kafka_fetch_partitions=[*READ, read(7, 300, 600, "m2")],
        ),
    ),
    silent(
        "KAF114", "a topic made anew has other offsets",
        **joined(
            kafka_offset_commits=STORED,
            kafka_admin_changes=[changed(4, "topic", "payments", "delete")],
            kafka_offset_fetches=[stored(6, -1)],
            kafka_list_offsets=[listed(6.1, -2, 0)],
            kafka_fetch_partitions=[
                *(row | {"topic_id": "old"} for row in READ), read(7, 0, 100, topic_id="new"),
            ],
        ),
    ),
    silent(
        "KAF114", "the offsets of another group were deleted",
        **joined(
            kafka_offset_commits=STORED,
            kafka_admin_changes=[changed(4, "group", "billing-2", "delete")],
            kafka_offset_fetches=[stored(6, 500)],
            kafka_fetch_partitions=[*READ, read(7, 500, 600)],
        ),
    ),
]  # fmt: skip
