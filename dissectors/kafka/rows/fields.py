"""The rows that the Kafka decoder makes, and what they are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

from wirewitness.dissectors.core.fields import Fields
from wirewitness.dissectors.core.remarks import Remark
from wirewitness.dissectors.kafka.rows.change_fields import ADMIN_CHANGES, AUTHENTICATIONS, TRANSACTIONS
from wirewitness.dissectors.kafka.rows.cluster_fields import API_VERSIONS, BROKERS, PARTITIONS
from wirewitness.dissectors.kafka.rows.data_fields import (
    FETCH_PARTITIONS,
    LEADER_EPOCHS,
    LIST_OFFSETS,
    PRODUCE_BATCHES,
    RECORDS,
)
from wirewitness.dissectors.kafka.rows.group_fields import ASSIGNMENTS, GROUP_EVENTS, OFFSET_COMMITS, OFFSET_FETCHES
from wirewitness.dissectors.kafka.rows.log_fields import REQUEST_TIMES
from wirewitness.dissectors.kafka.rows.share_fields import SHARE_ACKNOWLEDGES, SHARE_FETCHES, SHARE_OFFSETS
from wirewitness.dissectors.kafka.rows.stored_fields import STORED_OFFSETS
from wirewitness.dissectors.kafka.schema.primitives import Value

KAFKA_ROWS: dict[str, Fields] = {
    "kafka_offset_commits": OFFSET_COMMITS,
    "kafka_offset_fetches": OFFSET_FETCHES,
    "kafka_fetch_partitions": FETCH_PARTITIONS,
    "kafka_produce_batches": PRODUCE_BATCHES,
    "kafka_records": RECORDS,
    "kafka_group_events": GROUP_EVENTS,
    "kafka_assignments": ASSIGNMENTS,
    "kafka_share_fetches": SHARE_FETCHES,
    "kafka_share_acknowledges": SHARE_ACKNOWLEDGES,
    "kafka_share_offsets": SHARE_OFFSETS,
    "kafka_brokers": BROKERS,
    "kafka_partitions": PARTITIONS,
    "kafka_list_offsets": LIST_OFFSETS,
    "kafka_leader_epochs": LEADER_EPOCHS,
    "kafka_transactions": TRANSACTIONS,
    "kafka_api_versions": API_VERSIONS,
    "kafka_authentications": AUTHENTICATIONS,
    "kafka_admin_changes": ADMIN_CHANGES,
    "kafka_request_times": REQUEST_TIMES,
    "kafka_stored_offsets": STORED_OFFSETS,
}


class Request(NamedTuple):
    """A decoded request while it waits for its response. `value` is None where the body could not be decoded."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    offset: int
    length: int
    packet: int
    ts_ns: int
    value: Value | None
    extra: Any = None


class Response(NamedTuple):
    """The response to it. data: the buffer that record spans in `value` point into; remarks: where to add some."""

    offset: int
    packet: int
    ts_ns: int
    value: Value | None
    data: bytes
    remarks: list[Remark] | None = None

    def remark(self, remark: Remark) -> None:
        """Tell something about this response, if anybody listens."""
        if self.remarks is not None:
            self.remarks.append(remark)


def exchange_of(request: Request, response: Response | None) -> dict[str, int | None]:
    """What every row says of its exchange, by the names of the fields."""
    return {
        "request_offset": request.offset,
        "response_offset": None if response is None else response.offset,
        "ts": request.ts_ns,
        "ts_response": None if response is None else response.ts_ns,
    }


def placed_exchange_of(request: Request, response: Response | None) -> dict[str, int | None]:
    """The same with its packets."""
    return {
        **exchange_of(request, response),
        "request_packet": request.packet,
        "response_packet": None if response is None else response.packet,
    }


def exchange_key(request: Request, response: Response | None) -> tuple[int, int | None, int, int | None]:
    """What `exchange_of` gives as a tuple, with which rows begin that are made in masses and so by position."""
    if response is None:
        return request.offset, None, request.ts_ns, None
    return request.offset, response.offset, request.ts_ns, response.ts_ns
