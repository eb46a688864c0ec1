"""Errors that are everyday life, with the circumstances under which they are.

A client that works well gets them too: they belong to how a protocol tells something. Whoever judges errors leaves
them out: the report's head lists what no rule judged without them.
"""

from __future__ import annotations

from typing import NamedTuple


class Everyday(NamedTuple):
    """Errors that say nothing by themselves.

    operations: empty for all. codes: of the protocol. heals_s: everyday only where the same client has success with
    the same operation within so many seconds, or where the capture ends before they are over; None: in any case.
    """

    protocol: str
    operations: tuple[str, ...]
    codes: tuple[int, ...]
    heals_s: int | None
    why: str


_GROUP = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "ConsumerGroupHeartbeat", "LeaveGroup")

EVERYDAY: tuple[Everyday, ...] = (
    Everyday("kafka", ("JoinGroup",), (79,), None, "the broker gives a new member its id (KIP-394)"),
    Everyday("kafka", ("ApiVersions",), (35,), None, "a newer client asks again with version 0 (KIP-511)"),
    Everyday("kafka", _GROUP, (27,), None, "a rebalance is under way: members have to join again"),
    Everyday("kafka", ("ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe"), (69,), None,
             "admin tools ask for each type of group, one after the other"),
    Everyday("kafka", (), (14, 15, 16), 30, "a coordinator is made, loads or moves"),
    Everyday("kafka", (), (3, 5, 6, 7, 9, 13, 41, 70, 71, 72, 74, 75, 76, 77, 78, 100, 103, 106), 15,
             "a topic is made, a leader or controller moves, a fetch session ends: clients ask anew"),
    Everyday("kafka", _GROUP, (22, 25, 110, 113), 60, "a member that was left out of a rebalance joins again"),
    Everyday("kafka", (), (51, 89), 15, "the transaction before is still being ended (KIP-890)"),
    Everyday("kafka", ("Fetch",), (1,), 15, "a position outside the log is reset"),
    Everyday("mongo", ("endSessions", "hello", "isMaster", "ismaster", "buildInfo", "getParameter", "atlasVersion",
                       "getLog", "getCmdLineOpts", "top", "connectionStatus", "serverStatus"),
             (13, 59, 72, 115), None, "drivers and shells try what not every server knows or allows"),
    Everyday("mongo", ("create", "createIndexes", "drop", "dropIndexes", "dropDatabase"), (26, 27, 48, 68), None,
             "programs that start make and drop what is there, or gone, already"),
    Everyday("mongo", (), (112, 251, 10107, 11602, 189, 91, 13435, 13436), 15, "drivers repeat it by themselves"),
)  # fmt: skip
