"""Which rows the exchanges of an API give, and who makes them.

In: a request, with its response once that is read. Out: rows of Kafka's own tables. Records of a Produce, fetch
sessions and what is known of partitions are kept here from one exchange of a flow to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.remarks import Remark, Remarks
from wirewitness.dissectors.kafka.rows import (
    admin_rows,
    classic_groups,
    cluster_rows,
    data_rows,
    epoch_groups,
    group_rows,
    share_rows,
    transaction_rows,
)
from wirewitness.dissectors.kafka.rows.fetch_sessions import FetchSessions, forgotten, wishes
from wirewitness.dissectors.kafka.rows.fields import Request, Response
from wirewitness.dissectors.kafka.rows.record_rows import TABLE as RECORDS
from wirewitness.dissectors.kafka.rows.record_rows import RecordRows
from wirewitness.dissectors.kafka.schema.primitives import Value

PRODUCE, FETCH, METADATA = 0, 1, 3
DESCRIBE_TOPIC_PARTITIONS = 75

RowMaker = Callable[[Request, Response | None, Sink], None]


class Rows(NamedTuple):
    """What makes the rows of an API's exchanges, and the tables they are for."""

    make: RowMaker | None
    tables: tuple[str, ...]


def _both(first: RowMaker, second: RowMaker) -> RowMaker:
    """Rows of two kinds for one API."""

    def make(request: Request, response: Response | None, out: Sink) -> None:
        first(request, response, out)
        second(request, response, out)

    return make


_EVENTS = ("kafka_group_events", "kafka_assignments")
_CLUSTER = ("kafka_brokers", "kafka_partitions")
_TRANSACTIONS = ("kafka_transactions",)

_SHARE_STATE = Rows(share_rows.offset_rows, (share_rows.OFFSETS,))

_CHANGES = ("kafka_admin_changes",)
_ADMIN = {key: Rows(admin_rows.change_rows, _CHANGES) for key in admin_rows.CHANGES}

API_ROWS: Mapping[int, Rows] = {
    **_ADMIN,
    # Remarks: on the checksums of batches.
    PRODUCE: Rows(data_rows.produce_rows, ("kafka_produce_batches", "kafka_records", "expert_infos")),
    FETCH: Rows(data_rows.fetch_rows, ("kafka_fetch_partitions", "kafka_records", "expert_infos")),
    2: Rows(data_rows.list_offsets_rows, ("kafka_list_offsets",)),
    METADATA: Rows(None, _CLUSTER),  # made by the decoder, which knows earlier answers
    8: Rows(group_rows.commit_rows, ("kafka_offset_commits",)),
    9: Rows(group_rows.offset_fetch_rows, ("kafka_offset_fetches",)),
    10: Rows(cluster_rows.coordinator_rows, ("kafka_brokers",)),
    11: Rows(classic_groups.join_rows, _EVENTS),
    12: Rows(classic_groups.heartbeat_rows, _EVENTS),
    13: Rows(classic_groups.leave_rows, _EVENTS),
    14: Rows(classic_groups.sync_rows, _EVENTS),
    15: Rows(classic_groups.describe_rows, _EVENTS),
    19: Rows(
        _both(cluster_rows.created_topic_rows, admin_rows.change_rows), ("kafka_partitions", "kafka_admin_changes")
    ),
    22: Rows(transaction_rows.init_rows, _TRANSACTIONS),
    23: Rows(data_rows.leader_epoch_rows, ("kafka_leader_epochs",)),
    24: Rows(transaction_rows.add_partitions_rows, _TRANSACTIONS),
    25: Rows(transaction_rows.add_offsets_rows, _TRANSACTIONS),
    26: Rows(transaction_rows.end_rows, _TRANSACTIONS),
    27: Rows(transaction_rows.marker_rows, _TRANSACTIONS),
    28: Rows(
        _both(group_rows.commit_rows, transaction_rows.offset_commit_rows), ("kafka_offset_commits", *_TRANSACTIONS)
    ),
    60: Rows(cluster_rows.describe_cluster_rows, ("kafka_brokers",)),
    68: Rows(epoch_groups.consumer_heartbeat_rows, _EVENTS),
    69: Rows(epoch_groups.consumer_describe_rows, _EVENTS),
    DESCRIBE_TOPIC_PARTITIONS: Rows(None, ("kafka_partitions",)),  # as Metadata
    76: Rows(epoch_groups.share_heartbeat_rows, _EVENTS),
    77: Rows(epoch_groups.share_describe_rows, _EVENTS),
    78: Rows(share_rows.fetch_rows, (share_rows.FETCHES, share_rows.ACKNOWLEDGES)),
    79: Rows(share_rows.acknowledge_rows, (share_rows.ACKNOWLEDGES,)),
    **dict.fromkeys((83, 84, 85, 86, 87, 90), _SHARE_STATE),
    **dict.fromkeys(
        (91, 92), Rows(_both(share_rows.offset_rows, admin_rows.change_rows), (share_rows.OFFSETS, *_CHANGES))
    ),
    88: Rows(epoch_groups.streams_heartbeat_rows, _EVENTS),
    89: Rows(epoch_groups.streams_describe_rows, _EVENTS),
}

# A commit or fetch of many partitions gives many times its size in rows, and a block holds thousands of them.
MAX_HELD_ROWS = 1 << 15


@cache
def apis_with_rows(wanted: frozenset[str]) -> frozenset[int]:
    """Keys of the APIs that give rows of any of these tables."""
    return frozenset(key for key, rows in API_ROWS.items() if not wanted.isdisjoint(rows.tables))


class ExchangeRows:
    """Makes the rows of the exchanges of one flow. Picklable.

    remarks: where to tell what checking records told. sessions: what its Fetches ask for. records: makes the
    rows of their records.
    """

    __slots__ = ("_known", "_remarks", "records", "sessions")

    def __init__(self, limits: Limits, options: DecodeOptions, remarks: Remarks) -> None:
        self.records = RecordRows(limits, options)
        self.sessions = FetchSessions(limits)
        self._known = cluster_rows.KnownPartitions(limits)
        self._remarks = remarks

    @property
    def limits_reached(self) -> list[str]:
        """Codes of what is too much to remember for this flow, so far."""
        reached = (("known_partitions", self._known.full), ("fetch_sessions", self.sessions.full))
        return [code for code, full in reached if full]

    def extra(self, request: Request, value: Value, data: bytes, out: Sink) -> Any:
        """What the rows of an exchange need beside the request's value, read from `data` while it is at hand."""
        if request.api_key == FETCH:
            place = value.get("session_id", 0), value.get("session_epoch", -1)
            return self.sessions.asked(*place, forgotten(value), wishes(value))
        if request.api_key != PRODUCE:
            return None
        remarks: list[Remark] = []
        partitions = data_rows.produced(value, data, remarks)
        if out.rows(RECORDS) is not None:
            partitions = self.records.hold(request._replace(extra=partitions), data, out, remarks)
        self._remark(request, out, remarks)
        return partitions

    def add(self, request: Request, response: Response | None, out: Sink) -> None:
        """The rows of an exchange that is over. response: None for one that was not answered."""
        api_key = request.api_key
        if api_key == METADATA:
            cluster_rows.metadata_rows(request, response, out, self._known)
            return
        if api_key == DESCRIBE_TOPIC_PARTITIONS:
            cluster_rows.describe_partitions_rows(request, response, out, self._known)
            return
        if api_key == FETCH and request.extra is not None and response is not None and response.value is not None:
            self.sessions.answered(response.value.get("session_id", 0), request.extra)
        if api_key in {PRODUCE, FETCH} and out.rows(RECORDS) is not None:
            request = self._record_rows(request, response, out)
        rows = API_ROWS[api_key]
        if rows.make is not None:
            rows.make(request, response, out)
        for table in rows.tables:
            if len(out.rows(table) or ()) > MAX_HELD_ROWS:
                out.drain(table)

    def _record_rows(self, request: Request, response: Response | None, out: Sink) -> Request:
        """kafka_records; the request of a Produce comes back with what decompressing told."""
        if request.api_key == FETCH:
            if response is not None:
                self.records.fetched(request, response, out)
            return request
        remarks: list[Remark] = []
        partitions = self.records.produced(request, response, out, remarks)
        self._remark(request, out, remarks)
        return request._replace(extra=partitions)

    def _remark(self, request: Request, out: Sink, remarks: list[Remark]) -> None:
        place = (CLIENT_TO_SERVER, request.offset, request.length, request.packet, request.ts_ns)
        for remark in remarks:
            self._remarks.add(place, out, remark)
