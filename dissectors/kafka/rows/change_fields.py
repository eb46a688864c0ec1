"""Fields of the rows of what somebody does beside reading and writing: transactions, changes, logging in."""

from __future__ import annotations

from wirewitness.dissectors.core.fields import Field, Fields, ts
from wirewitness.dissectors.kafka.rows.common_fields import (
    CLIENT_ID,
    ERROR_CODE,
    ERROR_MESSAGE,
    REQUEST_OFFSET,
    REQUEST_PACKET,
    RESPONSE_OFFSET,
    RESPONSE_PACKET,
    TS,
    TS_RESPONSE,
)

TRANSACTIONS = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    TS,
    TS_RESPONSE,
    REQUEST_PACKET,
    RESPONSE_PACKET,
    CLIENT_ID,
    Field(
        "event",
        "string",
        "init_producer_id, add_partitions_to_txn, verify_partitions_in_txn, add_offsets_to_txn, "
        "txn_offset_commit, end_txn, write_txn_markers",
        nullable=False,
    ),
    Field("transactional_id", "string", "transactional id; null for an idempotent producer and for markers"),
    Field("producer_id", "int64", "producer id in the request; -1 none yet"),
    Field("producer_epoch", "int64", "producer epoch in the request; -1 none yet"),
    Field("answered_producer_id", "int64", "producer id given by InitProducerId or EndTxn (KIP-890)"),
    Field("answered_producer_epoch", "int64", "producer epoch given with it"),
    Field("group_id", "string", "consumer group whose offsets are part of it"),
    Field("topics", "string", "topics named, comma separated"),
    Field("partitions", "string", "partitions named as topic-partition, comma separated"),
    Field("partitions_count", "int64", "how many partitions are named"),
    Field("committed", "bool", "EndTxn and markers: true commits, false aborts"),
    Field("transaction_timeout_ms", "int64", "timeout that InitProducerId asks for", unit="ms"),
    ERROR_CODE,
)

AUTHENTICATIONS = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    ts("time of that request"),
    TS_RESPONSE,
    CLIENT_ID,
    Field("mechanism", "string", "SASL mechanism of the handshake; without one, as the first token shows it"),
    Field("user_name", "string", "user of PLAIN and SCRAM; other mechanisms do not show it"),
    Field("delegation_token", "bool", "user_name is the id of a delegation token (KIP-48)"),
    Field("form", "string", "sasl_authenticate, or bare_tokens without Kafka headers", nullable=False),
    Field("round_trips", "int64", "tokens that got a response", nullable=False),
    Field("accepted", "bool", "the client is in; null where nothing shows it"),
    Field("session_lifetime_ms", "int64", "time until it has to authenticate again (KIP-368)", unit="ms"),
    Field("reauthentication", "bool", "the connection was authenticated before", nullable=False),
    ERROR_CODE,
    ERROR_MESSAGE,
)

ADMIN_CHANGES = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    TS,
    TS_RESPONSE,
    REQUEST_PACKET,
    RESPONSE_PACKET,
    CLIENT_ID,
    Field("operation", "string", "API: CreateTopics, IncrementalAlterConfigs, ...", nullable=False),
    Field("validate_only", "bool", "only tried, nothing changes", nullable=False),
    Field("resource_type", "string", "topic, group, broker, user, quota, delegation_token, ...", nullable=False),
    Field("resource_name", "string", "name of it; null for any, for all, or where only a secret names it"),
    Field("change", "string", "what was to change; values of secret settings masked", nullable=False, content=True),
    ERROR_CODE,
    ERROR_MESSAGE,
)
