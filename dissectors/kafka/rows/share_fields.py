"""Fields of the rows of share groups: records that their members acquire and acknowledge (KIP-932)."""

from __future__ import annotations

from wirewitness.dissectors.core.fields import Field, Fields
from wirewitness.dissectors.kafka.rows.common_fields import (
    CLIENT_ID,
    ERROR_CODE,
    ERROR_MESSAGE,
    PARTITION,
    REQUEST_OFFSET,
    REQUEST_PACKET,
    RESPONSE_OFFSET,
    RESPONSE_PACKET,
    TOPIC,
    TOPIC_ID,
    TS,
    TS_RESPONSE,
)

_SHARE_GROUP = Field("group_id", "string", "share group")
_SHARE_MEMBER = Field("member_id", "string", "member id, which the client makes itself")
_SHARE_EPOCH = Field(
    "share_session_epoch", "int64", "number of the request in its share session; 0 opens it, -1 ends it"
)

SHARE_FETCHES = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    TS,
    TS_RESPONSE,
    REQUEST_PACKET,
    RESPONSE_PACKET,
    _SHARE_GROUP,
    _SHARE_MEMBER,
    CLIENT_ID,
    _SHARE_EPOCH,
    Field("lock_timeout_ms", "int64", "time to acknowledge in (group.share.record.lock.duration.ms)", unit="ms"),
    TOPIC_ID,
    PARTITION,
    Field("first_offset", "int64", "first offset acquired; null where an error is returned and nothing acquired"),
    Field("last_offset", "int64", "last offset acquired"),
    Field("records_count", "int64", "offsets acquired: last minus first plus 1"),
    Field("delivery_count", "int64", "how often these have been delivered now, this time included"),
    ERROR_CODE,
    ERROR_MESSAGE,
)

SHARE_ACKNOWLEDGES = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    TS,
    TS_RESPONSE,
    REQUEST_PACKET,
    RESPONSE_PACKET,
    Field("api", "string", "ShareFetch or ShareAcknowledge", nullable=False),
    _SHARE_GROUP,
    _SHARE_MEMBER,
    CLIENT_ID,
    _SHARE_EPOCH,
    TOPIC_ID,
    PARTITION,
    Field("first_offset", "int64", "first offset acknowledged", nullable=False),
    Field("last_offset", "int64", "last offset acknowledged", nullable=False),
    Field(
        "acknowledge_type",
        "string",
        "accept (done), release (deliver again), reject (never again), renew (more time), gap (no record there); a "
        "number that has no name; mixed: too many runs for a row each",
    ),
    ERROR_CODE,
    ERROR_MESSAGE,
)

SHARE_OFFSETS = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    TS,
    TS_RESPONSE,
    REQUEST_PACKET,
    RESPONSE_PACKET,
    Field("api", "string", "name of the request, as WriteShareGroupState or DescribeShareGroupOffsets", nullable=False),
    CLIENT_ID,
    _SHARE_GROUP,
    TOPIC,
    TOPIC_ID,
    Field("partition", "int64", "partition index; null where a whole topic is meant"),
    Field(
        "start_offset",
        "int64",
        "where the share partition starts: records before it are done; -1 not known yet, null where none is reported",
    ),
    Field("lag", "int64", "records that are still to be delivered, as the broker says; -1 where it does not know"),
    Field("leader_epoch", "int64", "leader epoch of the partition"),
    Field("state_epoch", "int64", "number of times that the state was begun anew"),
    Field("delivery_complete_count", "int64", "records after the start that are done (KIP-1226); -1 not known"),
    Field("batches_count", "int64", "ranges of records after the start whose delivery is reported; null without"),
    ERROR_CODE,
    ERROR_MESSAGE,
)
