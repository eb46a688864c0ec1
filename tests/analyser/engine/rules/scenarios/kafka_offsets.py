"""Where groups read: records skipped, read again, never committed."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import Row, commit, simple_commit, stored
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
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires


def _passed(rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The record is handled at last."""
    return rows | {"kafka_offset_commits": [*rows["kafka_offset_commits"], commit(39, 103, member_id="m1-4")]}


KAFKA_OFFSETS_FIRES: list[Scenario] = [
    fires(
        "KAF109", "warning", "commits stop while reading goes on",
        **joined(
            kafka_offset_commits=[commit(n, n * 100) for n in range(1, 9)],
            kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100) for n in range(40)],
        ),
    ),
    fires(
        "KAF120", "warning", "the next fetch is far above where the answer led",
        **joined(kafka_fetch_partitions=[*READ, read(4, 900, 950)]),
    ),
    fires(
        "KAF120", "info", "it goes back behind what was stored by itself",
        **joined(kafka_offset_commits=STORED, kafka_fetch_partitions=[*READ, read(4, 100, 200)]),
    ),
    fires(
        "KAF120", "info", "it fetches again from further on than it had handled, and never commits what lies between",
        **went_ahead(*(commit(n, 30 * n, partition=1) for n in range(6, 10)), commit(10, 260)),
    ),
    fires(
        "KAF121", "critical", "a partition is added and read from its end after it was written to",
        **joined(
            kafka_admin_changes=[changed(5, "topic", "payments", "partitions=1")],
            kafka_offset_fetches=[stored(6, -1)],
            kafka_list_offsets=[listed(6.1, -1, 40)],
            kafka_fetch_partitions=[read(7, 40, 50)],
        ),
    ),
    fires(
        "KAF122", "warning", "1,200 records and no commit",
        **joined(kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100) for n in range(12)]),
    ),
    fires(
        "KAF122", "warning", "a member commits nothing in a time in which another one does ten times",
        **joined(
            kafka_offset_commits=[commit(n * 2 + 0.5, n * 20 + 20, "m2", partition=1) for n in range(10)],
            kafka_fetch_partitions=[
                row for n in range(20) for row in (
                    read(n, n * 10, n * 10 + 10),
                    read(n, n * 10, n * 10 + 10, partition=1, member="m2"),
                )
            ],
        ),
    ),
    fires(
        "KAF122", "warning", "a member commits nothing of what another one committed before it took over",
        **takes_over(),
    ),
    fires(
        "KAF123", "info", "a commit for each record",
        kafka_offset_commits=[commit(n / 100, 1000 + n) for n in range(400)],
    ),
    fires(
        "KAF124", "warning", "three restarts, each one record below",
        **restarted(3, 1), kafka_produce_batches=produced(False),
    ),
    fires("KAF131", "warning", "back to the log's start three times", **anew(3)),
    fires("KAF133", "warning", "a hundred records for each of twenty", **overlapping(20, 1)),
    fires("KAF124", "warning", "the lag of all commits is one", **at_rest(1)),
    fires(
        "KAF125", "warning", "one partition is left alone while it grows",
        **joined(
            kafka_offset_commits=[commit(n, n * 10, partition=1) for n in range(1, 60)],
            kafka_fetch_partitions=[
                read(1, 0, 80), *(read(n, n * 10, n * 10 + 10, partition=1, high_watermark=n * 10) for n in range(60)),
                read(59, 700, high_watermark=800, client_id="other", client_address="10.1.0.9"),
            ],
        ),
    ),
    fires(
        "KAF127", "warning", "a frozen member comes back, and its commit is refused",
        **taken_over(commit(20, 500, error_code=25)),
    ),
    fires(
        "KAF127", "warning", "one whose fetches are not in the capture is refused after another took over",
        **joined(
            kafka_offset_commits=[commit(20, 500, error_code=25)],
            kafka_offset_fetches=[stored(9, 300, "m2")],
            kafka_fetch_partitions=[read(10, 300, 600, "m2")],
        ),
    ),
    fires(
        "KAF127", "critical", "a frozen member comes back, and its commit is taken",
        **taken_over(commit(20, 500)),
    ),
    fires(
        "KAF129", "critical", "a refused commit is stored later over a newer one",
        kafka_offset_commits=[commit(1, 300, error_code=25), commit(5, 500), commit(6, 300)],
        kafka_fetch_partitions=[read(4, 490, 500)],
    ),
    fires(
        "KAF129", "warning", "and newer ones follow",
        kafka_offset_commits=[
            commit(1, 300, error_code=27), commit(5, 500), commit(6, 300), commit(7, 600),
        ],
        kafka_fetch_partitions=[read(4, 490, 500)],
    ),
    fires(
        "KAF129", "warning", "a coordinator that moved refused it, and it stands for long",
        kafka_offset_commits=[
            commit(1, 300, error_code=14), commit(2, 500), commit(2.1, 300), commit(9, 600),
        ],
        kafka_fetch_partitions=[read(1.5, 490, 500)],
    ),
    fires(
        "KAF119", "critical", "a record whose handling takes longer than max.poll.interval",
        **poisoned(3, "consumer poll timeout has expired."),
    ),
    fires("KAF119", "critical", "a client that gives no reason joins again on its connection", **poisoned(3)),
    fires("KAF119", "warning", "in the end a commit passes it", **_passed(poisoned(3))),
    fires(
        "KAF121", "critical", "the group was deleted, and begins again at latest",
        **joined(
            kafka_offset_commits=STORED,
            kafka_admin_changes=[changed(5, "group", "billing", "delete")],
            kafka_offset_fetches=[stored(6, -1)],
            kafka_list_offsets=[listed(6.1, -1, 900)],
            kafka_fetch_partitions=[*READ, read(7, 900, 950)],
        ),
    ),
    fires(
        "KAF121", "critical", "retention removed what a stopped group had not read",
        **joined(
            kafka_offset_commits=STORED,
            kafka_offset_fetches=[stored(60, 500)],
            kafka_list_offsets=[listed(61, -2, 800)],
            kafka_fetch_partitions=[
                *READ, read(60.5, 500, error_code=1), read(62, 800, 900, log_start_offset=800),
            ],
        ),
    ),
    fires(
        "KAF121", "critical", "records go on being removed while the reader asks where the log starts",
        **joined(
            kafka_offset_commits=STORED,
            kafka_list_offsets=[listed(5.1, -2, 700), listed(5.3, -2, 800), listed(5.5, -2, 900)],
            kafka_fetch_partitions=[
                *READ, read(5, 500, error_code=1), read(5.2, 700, error_code=1), read(5.4, 800, error_code=1),
                read(5.6, 900, 950, log_start_offset=900),
            ],
        ),
    ),
    fires(
        "KAF121", "critical", "a member is refused at once at the offset that OffsetFetch returned",
        **joined(
            kafka_offset_fetches=[stored(0.5, 500)],
            kafka_list_offsets=[listed(1.1, -2, 800)],
            kafka_fetch_partitions=[read(1, 500, error_code=1), read(1.2, 800, 900, log_start_offset=800)],
        ),
    ),
    fires(
        "KAF103", "warning", "the log was truncated, and the reader goes back to where the epoch ends",
        **joined(
            kafka_offset_commits=[*STORED, commit(6, 350)],
            kafka_leader_epochs=[epoch_end(4.5, 300)],
            kafka_fetch_partitions=[*READ, read(5, 300, 350, high_watermark=350)],
        ),
    ),
    fires(
        "KAF121", "warning", "a tool sets a stopped group forward, to a member that is new",
        **joined(
            kafka_offset_commits=[*STORED, simple_commit(5, 700)],
            kafka_offset_fetches=[stored(6, 700, "m2")],
            kafka_fetch_partitions=[*READ, read(7, 700, 750, "m2")],
        ),
    ),
    fires(
        "KAF121", "info", "the client begins elsewhere by itself",
        **joined(
            kafka_offset_commits=STORED,
            kafka_offset_fetches=[stored(6, 500)],
            kafka_fetch_partitions=[*READ, read(7, 700, 750)],
        ),
    ),
    fires(
        "KAF114", "warning", "the offset is gone, and the whole log comes again",
        **joined(
            kafka_offset_commits=STORED,
            kafka_offset_fetches=[stored(60, -1, "m2")],
            kafka_list_offsets=[listed(61, -2, 0, "m2")],
            kafka_fetch_partitions=[*READ, read(62, 0, 300, "m2")],
        ),
    ),
    fires(
        "KAF114", "warning", "the broker answers with an older offset than it had accepted",
        **joined(
            kafka_offset_commits=STORED,
            kafka_offset_fetches=[stored(6, 200)],
            kafka_fetch_partitions=[*READ, read(7, 200, 300)],
        ),
    ),
]  # fmt: skip
