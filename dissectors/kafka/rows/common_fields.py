"""Fields that rows of several of Kafka's tables have."""

from __future__ import annotations

from wirewitness.dissectors.core.fields import Field, packet, ts

# The exchange: where its messages are in their streams, and their times.
REQUEST_OFFSET = Field("request_offset")
RESPONSE_OFFSET = Field("response_offset")
TS = ts("time of the packet that completes the request")
TS_RESPONSE = Field("ts_response", "time", "time of the packet that completes the response", unit="UTC")
# In tables that leave it to `exchanges`.
UNSHOWN_TS_RESPONSE = Field("ts_response", "time")
REQUEST_PACKET = packet("request_packet", "packet that completes the request")
RESPONSE_PACKET = packet("response_packet", "packet that completes the response")
CLIENT_ID = Field("client_id", "string", "client id in the request header")
GROUP_ID = Field("group_id", "string", "consumer group")
MEMBER_ID = Field("member_id", "string", "member id the coordinator gave to this member")
GROUP_INSTANCE_ID = Field("group_instance_id", "string", "static member name (KIP-345)")
TOPIC = Field("topic", "string", "topic name; from the topic id where only that is on the wire", source="context")
TOPIC_ID = Field("topic_id", "string", "topic id where it is on the wire")
TRANSACTIONAL_ID = Field("transactional_id", "string", "transactional id; null without transactions")
ISOLATION_LEVEL = Field("isolation_level", "int64", "0 read uncommitted, 1 read committed; null in old versions")
ERROR_MESSAGE = Field("error_message", "string", "the broker's words")
PARTITION = Field("partition", "int64", "partition index", nullable=False)
ERROR_CODE = Field("error_code", "int64", "protocol error code, 0 is success; null when unanswered")
