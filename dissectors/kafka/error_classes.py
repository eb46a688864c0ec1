"""What an error code of Kafka asks of whom: does it heal, and who must act. By code, and by API where it differs.

In: nothing. Out: `error_class`. Sources: org.apache.kafka.common.protocol.Errors of Kafka 4.4.0 and which of its
exceptions are a RetriableException; the answers of KafkaApis and of the group and transaction coordinators.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

# itself: it belongs to the course of the protocol. retry: clients ask again, and have success once the cause is over.
# never: the same request is refused until somebody changes a setting, a right or the request.
Heals = Literal["itself", "retry", "never"]
Actor = Literal["client", "application", "operator", "nobody"]


class ErrorClass(NamedTuple):
    """heals: see Heals. actor: who has to act. meaning: why the broker refuses, to follow "because"; empty where the
    name says it. next_step: what to do, empty where nobody has to."""

    heals: Heals
    actor: Actor
    meaning: str = ""
    next_step: str = ""


_MAKE_TOPIC = (
    "Check whether the topic was deleted, or is spelled wrongly (kafka-topics.sh --describe); make it, or set the name "
    "right in the application."
)
_REPLICAS = (
    "Bring the missing replicas back (look at these brokers' logs and disks, at the network between brokers). Only "
    "where fewer copies are acceptable, lower min.insync.replicas of the topic (kafka-configs.sh --alter)."
)
_LEADER = (
    "Look why the partition has no leader that this client finds: kafka-topics.sh --describe "
    "--unavailable-partitions, the brokers' logs, and metadata.max.age.ms of the client."
)
_OFFSETS_TOPIC = "Look whether __consumer_offsets and __transaction_state have leaders and enough live replicas."
_UPGRADE = "Use a version of the client library that fits the broker, or upgrade the broker."

_ITSELF = ErrorClass("itself", "nobody")
_RETRY = ErrorClass("retry", "operator")

_BY_CODE: dict[int, ErrorClass] = {
    **dict.fromkeys((22, 25, 27, 79, 82, 110, 111, 113, 121, 122, 123, 124), _ITSELF),
    **dict.fromkeys((70, 71, 74, 75, 78, 80, 83, 84, 85, 88, 103, 106, 108, 109, 129), _ITSELF),
    **dict.fromkeys((2, 7, 8, 9, 13, 41, 51, 60, 72, 89, 107, 120, 133), _RETRY),
    -1: ErrorClass("never", "operator", "the broker failed at it", "Look at the broker's log of that time."),
    1: ErrorClass("itself", "application", "the log begins above that offset, or ends below it"),
    3: ErrorClass("retry", "application", "the broker does not have this topic or partition", _MAKE_TOPIC),
    5: ErrorClass("retry", "operator", "the partition has no leader", _LEADER),
    6: ErrorClass("retry", "operator", "the broker does not lead this partition", _LEADER),
    14: ErrorClass("retry", "operator", "the coordinator still loads its state", _OFFSETS_TOPIC),
    15: ErrorClass("retry", "operator", "there is no coordinator", _OFFSETS_TOPIC),
    16: ErrorClass("retry", "client", "this broker is not the coordinator", "Look why the client keeps asking a broker "
                   "that no longer coordinates its group or transaction."),
    19: ErrorClass("retry", "operator", "fewer replicas are in sync than min.insync.replicas", _REPLICAS),
    20: ErrorClass("retry", "operator", "fewer replicas were in sync than min.insync.replicas", _REPLICAS),
    56: ErrorClass("retry", "operator", "the broker cannot write to its disk", "Look at the disk and log of that "
                   "broker."),
    100: ErrorClass("retry", "application", "no topic has this id any more", _MAKE_TOPIC),
    10: ErrorClass("never", "application", "a batch is larger than max.message.bytes of the topic", "Raise "
                   "max.message.bytes of the topic, or make batches smaller (batch.size, max.request.size)."),
    12: ErrorClass("never", "application", "the commit's metadata is longer than offset.metadata.max.bytes",
                   "Shorten the commit's metadata or raise offset.metadata.max.bytes."),
    17: ErrorClass("never", "application", "no topic can have this name, or it is an internal one", "Set the topic's "
                   "name right: letters, digits, '.', '_' and '-', at most 249."),
    18: ErrorClass("never", "application", "a batch is larger than a segment of the log", "Lower batch.size."),
    21: ErrorClass("never", "application", "no broker knows this value of acks", "Set acks to 0, 1 or all."),
    23: ErrorClass("never", "application", "it has no assignor, or another protocol type, than the members of the "
                   "group", "Give all members of the group one partition.assignment.strategy, or this one another "
                   "group.id."),
    24: ErrorClass("never", "application", "the group id is empty or not valid", "Set group.id."),
    26: ErrorClass("never", "application", "its session timeout is outside of what the broker allows", "Set "
                   "session.timeout.ms between group.min.session.timeout.ms and group.max.session.timeout.ms of the "
                   "broker (6 s and 30 min by default)."),
    28: ErrorClass("never", "application", "the commit is larger than a segment of __consumer_offsets",
                   "Look at the size of the commit's metadata and at the broker's log."),
    29: ErrorClass("never", "operator", "its principal has no right to the topic", "Give the client's principal the "
                   "right to the topic: kafka-acls.sh --add --allow-principal User:NAME --operation Read (or Write, "
                   "Describe) --topic TOPIC; look also whether it logs in as the user that is meant."),
    30: ErrorClass("never", "operator", "its principal has no right to the group", "Give the client's principal Read "
                   "on the group: kafka-acls.sh --add --allow-principal User:NAME --operation Read --group GROUP; look "
                   "also whether group.id and the user are those that are meant."),
    31: ErrorClass("never", "operator", "its principal has no right to this in the cluster", "Give the client's "
                   "principal the right to the cluster (kafka-acls.sh --add --cluster --operation "
                   "IdempotentWrite, Describe or Alter), or set enable.idempotence=false for an old broker's "
                   "producer."),
    32: ErrorClass("never", "application", "the time of a record is too far from the broker's", "Set the producer's "
                   "clock right, or message.timestamp.before.max.ms and message.timestamp.after.max.ms."),
    33: ErrorClass("never", "application", "the listener does not offer this mechanism", "Set sasl.mechanism to one "
                   "that the listener offers (sasl.enabled.mechanisms)."),
    34: ErrorClass("never", "application", "the listener does not expect a login, or not yet", "Set security.protocol "
                   "of the client to that of the listener."),
    35: ErrorClass("never", "application", "the broker does not know this version of the request", _UPGRADE),
    36: ErrorClass("itself", "nobody", "there is one of this name already"),
    37: ErrorClass("never", "application", "no topic can have so many partitions", "Set the number of partitions "
                   "right: 1 or more, and not fewer than the topic has."),
    38: ErrorClass("never", "application", "there are not so many brokers", "Set the replication factor to the number "
                   "of brokers or below, -1 for the broker's default.replication.factor, or bring brokers back."),
    39: ErrorClass("never", "application", "its list of replicas is not valid", "Name brokers that there are, each "
                   "once, and as many for each partition."),
    40: ErrorClass("never", "application", "a setting has no such value, or there is no such setting", "Look at the "
                   "error message in the response, and at the settings that this version of the broker knows."),
    42: ErrorClass("never", "client", "the request contradicts itself or the broker's settings", "Look at the "
                   "broker's log and at the error message in the response; a newer client library may send it right."),
    43: ErrorClass("never", "operator", "the message format of the topic does not allow it", _UPGRADE),
    44: ErrorClass("never", "operator", "a policy of the cluster forbids it", "Look at the broker's "
                   "create.topic.policy.class.name and alter.config.policy.class.name."),
    50: ErrorClass("never", "application", "its transaction timeout is above what the broker allows", "Set "
                   "transaction.timeout.ms of the producer to transaction.max.timeout.ms of the broker (15 min by "
                   "default) or below."),
    53: ErrorClass("never", "operator", "its principal has no right to the transactional id", "Give the client's "
                   "principal Write on the transactional id: kafka-acls.sh --add --allow-principal User:NAME "
                   "--operation Write --transactional-id ID."),
    54: ErrorClass("never", "operator", "the broker has no authorizer", "Set authorizer.class.name of the broker, or "
                   "leave ACLs alone."),
    58: ErrorClass("never", "application", "user or password are wrong", "Correct user and password of this client, "
                   "or create the user at the broker (kafka-configs.sh --alter --entity-type users)."),
    68: ErrorClass("never", "application", "the group still has members", "Stop all members of the group first; look "
                   "whether it is the group that is meant."),
    69: ErrorClass("itself", "client", "the group is gone", "Let the consumer join again."),
    76: ErrorClass("never", "application", "the broker does not take this compression", "Choose another "
                   "compression.type in the producer."),
    81: ErrorClass("never", "operator", "the group has as many members as group.max.size allows", "Raise "
                   "group.max.size of the broker, or start fewer members."),
    86: ErrorClass("never", "application", "members of the group still subscribe to the topic", "Stop these members "
                   "first, or let them subscribe to other topics."),
    87: ErrorClass("never", "application", "a record breaks what the topic asks for", "Give every record of a "
                   "compacted topic a key; look at schema validation of the broker, if it has any, and at the "
                   "broker's log for the record."),
    104: ErrorClass("never", "operator", "the request names another cluster id", "Look whether bootstrap.servers and "
                    "the brokers' settings name the cluster that is meant."),
    112: ErrorClass("never", "application", "the broker has no such assignor", "Set group.remote.assignor to one of "
                    "group.consumer.assignors of the broker."),
    128: ErrorClass("never", "application", "the subscription's regular expression is not valid (RE2/J syntax)",
                    "Correct the pattern of the subscription."),
    130: ErrorClass("never", "application", "the topology of the application is not valid", "Look at the status in "
                    "the response of StreamsGroupHeartbeat."),
}  # fmt: skip

# Where an API means something else by a code.
_BY_API: dict[tuple[str, int], ErrorClass] = {
    ("Produce", 2): ErrorClass("retry", "operator", "the checksum of the batch is wrong", "See KAF307: who changes the "
                               "bytes?"),
    ("Produce", 7): ErrorClass("retry", "operator", "replicas did not take the batch in time; the leader may have "
                               "stored it all the same", f"{_REPLICAS} Without enable.idempotence a batch that is sent "
                               "again may be stored twice."),
    ("Produce", 17): ErrorClass("never", "application", "nobody may write to this topic, or its name is not allowed",
                                _MAKE_TOPIC),
    ("Produce", 20): ErrorClass("retry", "operator", "the leader stored the batch, but fewer replicas were in sync "
                                "than min.insync.replicas", f"{_REPLICAS} Without enable.idempotence batches that are "
                                "sent again are stored twice."),
    ("InitProducerId", 42): ErrorClass("never", "application", "the transactional id is empty, or its settings "
                                       "contradict each other", "Set transactional.id to a text that is not empty."),
    ("ConsumerGroupHeartbeat", 69): ErrorClass("never", "application", "there is a classic group of this name, and the "
                                               "broker does not convert it", "Use one protocol for all members of the "
                                               "group: stop the classic ones first, or set "
                                               "group.consumer.migration.policy=bidirectional at the brokers while "
                                               "both are there, or give it another group.id."),
    ("JoinGroup", 42): ErrorClass("never", "client", "its protocols or its group.instance.id are not valid", "Look at "
                                  "the consumer's settings and the broker's log."),
}  # fmt: skip

# Codes that stay, whatever a client tries.
NEVER = tuple(sorted(code for code, one in _BY_CODE.items() if one.heals == "never"))
# API and code, where such a code stays in responses of this API only.
NEVER_OF = tuple(
    sorted(pair for pair, one in _BY_API.items() if one.heals == "never" and pair[1] not in NEVER and pair[0])
)


def error_class(code: int, api: str | None = None) -> ErrorClass:
    """What a code means in responses of an API; a code that nobody knows is one to try again."""
    return _BY_API.get((api or "", code)) or _BY_CODE.get(code, _RETRY)
