"""Tables of Kafka's share groups (KIP-932). Their topics are named by id alone on the wire."""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, Table, columns_of
from wirewitness.analyser.tables.shared import CLIENT_ADDRESS, CLIENT_PORT, CLUSTER, ERROR_NAME, EXCHANGE_ID, PLACE
from wirewitness.dissectors.core.fields import Fields
from wirewitness.dissectors.kafka.rows.share_fields import SHARE_ACKNOWLEDGES, SHARE_FETCHES, SHARE_OFFSETS


def _table(name: str, meaning: str, fields: Fields) -> Table:
    others = {
        "": (EXCHANGE_ID,),
        "ts_response": (CLUSTER,),
        "client_id": (CLIENT_ADDRESS, CLIENT_PORT),
        "topic_id": (Column("topic", "string", "topic name, where an answer named the id", "context"),),
        "error_code": (ERROR_NAME, "error_message", *PLACE),
    }
    return Table(
        name, meaning, columns_of(fields, others), ("ts", "exchange_id", "topic", "partition", "first_offset"), "kafka"
    )


SHARE_TABLES = (
    _table(
        "kafka_share_fetches",
        "one row per range of records that a member of a share group acquired, or partition answered with an error",
        SHARE_FETCHES,
    ),
    _table(
        "kafka_share_acknowledges",
        "one row per range of records that a member of a share group acknowledged, in a ShareAcknowledge or ShareFetch",
        SHARE_ACKNOWLEDGES,
    ),
    Table(
        "kafka_share_offsets",
        "one row per partition of which the start in a share group was asked for, set, or kept by brokers",
        columns_of(
            SHARE_OFFSETS,
            {
                "": (EXCHANGE_ID,),
                "api": (CLUSTER,),
                "client_id": (CLIENT_ADDRESS, CLIENT_PORT),
                "error_code": (ERROR_NAME, "error_message", *PLACE),
            },
        ),
        ("ts", "exchange_id", "topic", "topic_id", "partition"),
        "kafka",
    ),
)
