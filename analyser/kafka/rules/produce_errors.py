"""What errors of Produce mean, for KAF205. In: nothing. Out: a table by error code.

Source: Kafka's Errors; which of them are retriable, and what clients do then, from kafka-clients and librdkafka.
"""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """One error of Produce. retried: clients send the batch again until delivery.timeout.ms is over."""

    name: str
    meaning: str
    next_step: str
    retried: bool = False


_REPLICAS = (
    "Bring the missing replicas back (look at these brokers' logs and disks, at the network between brokers). Only "
    "where fewer copies are acceptable, lower min.insync.replicas of the topic (kafka-configs.sh --alter). Records "
    "that were not stored have to be sent again by the application."
)
_TOPIC = (
    "Check whether the topic was deleted, or is spelled wrongly (kafka-topics.sh --describe); make it, or set the "
    "producer's topic right."
)
_LEADER = (
    "Look why the partition has no leader that this client finds: kafka-topics.sh --describe "
    "--unavailable-partitions, the brokers' logs, and metadata.max.age.ms of the client."
)
_RIGHTS = "Give the client's principal Write on the topic: kafka-acls.sh --add --producer --topic TOPIC."

REFUSALS: dict[int, Refusal] = {
    2: Refusal("CORRUPT_MESSAGE", "the checksum of the batch is wrong", "See KAF307: who changes the bytes?", True),
    3: Refusal("UNKNOWN_TOPIC_OR_PARTITION", "the broker does not have this partition", _TOPIC, True),
    5: Refusal("LEADER_NOT_AVAILABLE", "the partition has no leader", _LEADER, True),
    6: Refusal("NOT_LEADER_OR_FOLLOWER", "the broker does not lead this partition", _LEADER, True),
    7: Refusal(
        "REQUEST_TIMED_OUT",
        "replicas did not take the batch in time; the leader may have stored it all the same",
        _REPLICAS + " Without enable.idempotence a batch that is sent again may be stored twice.",
        True,
    ),
    10: Refusal(
        "MESSAGE_TOO_LARGE",
        "the batch is larger than the topic takes",
        "Raise max.message.bytes of the topic (and max.partition.fetch.bytes of its consumers), or make the records "
        "smaller: max.request.size, batch.size and compression.type of the producer, or a reference instead of the "
        "value.",
    ),
    17: Refusal("INVALID_TOPIC_EXCEPTION", "nobody may write to this topic, or its name is not allowed", _TOPIC),
    18: Refusal("RECORD_LIST_TOO_LARGE", "the batch is larger than a segment of the log", "Lower batch.size."),
    19: Refusal("NOT_ENOUGH_REPLICAS", "fewer replicas are in sync than min.insync.replicas", _REPLICAS, True),
    20: Refusal(
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "the leader stored the batch, but fewer replicas were in sync than min.insync.replicas",
        _REPLICAS + " Without enable.idempotence batches that are sent again are stored twice.",
        True,
    ),
    21: Refusal("INVALID_REQUIRED_ACKS", "acks has a value that no broker knows", "Set acks to 0, 1 or all."),
    29: Refusal("TOPIC_AUTHORIZATION_FAILED", "it may not write to this topic", _RIGHTS),
    31: Refusal("CLUSTER_AUTHORIZATION_FAILED", "it has no right for this in the cluster", _RIGHTS),
    32: Refusal(
        "INVALID_TIMESTAMP",
        "the time of a record is too far from the broker's",
        "Set the producer's clock right, or message.timestamp.before.max.ms and message.timestamp.after.max.ms.",
    ),
    53: Refusal(
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "it may not use this transactional id",
        "Give the client's principal Write on the transactional id (kafka-acls.sh --add --transactional-id ID).",
    ),
    56: Refusal(
        "KAFKA_STORAGE_ERROR", "the leader cannot write to its disk", "Look at the disk and log of that broker.", True
    ),
    76: Refusal(
        "UNSUPPORTED_COMPRESSION_TYPE",
        "the broker does not take this compression",
        "Choose another compression.type in the producer.",
    ),
    87: Refusal(
        "INVALID_RECORD",
        "a record breaks what the topic asks for",
        "Give every record of a compacted topic a key; look at schema validation of the broker, if it has any, and at "
        "the broker's log for the record.",
    ),
    100: Refusal("UNKNOWN_TOPIC_ID", "no topic has this id any more", _TOPIC, True),
}
OTHER = Refusal("", "it does not take the batch", "Look at the broker's log of that time and at the client's.")
