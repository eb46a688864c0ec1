"""Every Kafka API key: its name, its newest version and its first flexible version.

Flexible versions (KIP-482) have request header 2 and response header 1. Source: ApiKeys and the message definitions of
Apache Kafka 4.4.0; keys 4 to 7, which Kafka 4.0 removed, from 3.9.1.
"""

from __future__ import annotations

from typing import NamedTuple


class ApiKey(NamedTuple):
    """`newest` is the highest version that is known, `flexible` the first flexible one, None if there is none."""

    name: str
    newest: int
    flexible: int | None


API_KEYS: dict[int, ApiKey] = {
    0: ApiKey("Produce", 13, 9),
    1: ApiKey("Fetch", 18, 12),
    2: ApiKey("ListOffsets", 11, 6),
    3: ApiKey("Metadata", 13, 9),
    4: ApiKey("LeaderAndIsr", 7, 4),
    5: ApiKey("StopReplica", 4, 2),
    6: ApiKey("UpdateMetadata", 8, 6),
    7: ApiKey("ControlledShutdown", 3, 3),
    8: ApiKey("OffsetCommit", 10, 8),
    9: ApiKey("OffsetFetch", 10, 6),
    10: ApiKey("FindCoordinator", 6, 3),
    11: ApiKey("JoinGroup", 9, 6),
    12: ApiKey("Heartbeat", 4, 4),
    13: ApiKey("LeaveGroup", 5, 4),
    14: ApiKey("SyncGroup", 5, 4),
    15: ApiKey("DescribeGroups", 6, 5),
    16: ApiKey("ListGroups", 5, 3),
    17: ApiKey("SaslHandshake", 1, None),
    18: ApiKey("ApiVersions", 5, 3),
    19: ApiKey("CreateTopics", 7, 5),
    20: ApiKey("DeleteTopics", 6, 4),
    21: ApiKey("DeleteRecords", 2, 2),
    22: ApiKey("InitProducerId", 6, 2),
    23: ApiKey("OffsetForLeaderEpoch", 4, 4),
    24: ApiKey("AddPartitionsToTxn", 5, 3),
    25: ApiKey("AddOffsetsToTxn", 4, 3),
    26: ApiKey("EndTxn", 5, 3),
    27: ApiKey("WriteTxnMarkers", 2, 1),
    28: ApiKey("TxnOffsetCommit", 6, 3),
    29: ApiKey("DescribeAcls", 3, 2),
    30: ApiKey("CreateAcls", 3, 2),
    31: ApiKey("DeleteAcls", 3, 2),
    32: ApiKey("DescribeConfigs", 4, 4),
    33: ApiKey("AlterConfigs", 2, 2),
    34: ApiKey("AlterReplicaLogDirs", 2, 2),
    35: ApiKey("DescribeLogDirs", 5, 2),
    36: ApiKey("SaslAuthenticate", 2, 2),
    37: ApiKey("CreatePartitions", 3, 2),
    38: ApiKey("CreateDelegationToken", 3, 2),
    39: ApiKey("RenewDelegationToken", 2, 2),
    40: ApiKey("ExpireDelegationToken", 2, 2),
    41: ApiKey("DescribeDelegationToken", 3, 2),
    42: ApiKey("DeleteGroups", 3, 2),
    43: ApiKey("ElectLeaders", 2, 2),
    44: ApiKey("IncrementalAlterConfigs", 1, 1),
    45: ApiKey("AlterPartitionReassignments", 1, 0),
    46: ApiKey("ListPartitionReassignments", 0, 0),
    47: ApiKey("OffsetDelete", 0, None),
    48: ApiKey("DescribeClientQuotas", 1, 1),
    49: ApiKey("AlterClientQuotas", 1, 1),
    50: ApiKey("DescribeUserScramCredentials", 0, 0),
    51: ApiKey("AlterUserScramCredentials", 0, 0),
    52: ApiKey("Vote", 2, 0),
    53: ApiKey("BeginQuorumEpoch", 1, 1),
    54: ApiKey("EndQuorumEpoch", 1, 1),
    55: ApiKey("DescribeQuorum", 2, 0),
    56: ApiKey("AlterPartition", 3, 0),
    57: ApiKey("UpdateFeatures", 2, 0),
    58: ApiKey("Envelope", 0, 0),
    59: ApiKey("FetchSnapshot", 1, 0),
    60: ApiKey("DescribeCluster", 2, 0),
    61: ApiKey("DescribeProducers", 0, 0),
    62: ApiKey("BrokerRegistration", 4, 0),
    63: ApiKey("BrokerHeartbeat", 2, 0),
    64: ApiKey("UnregisterBroker", 0, 0),
    65: ApiKey("DescribeTransactions", 0, 0),
    66: ApiKey("ListTransactions", 2, 0),
    67: ApiKey("AllocateProducerIds", 0, 0),
    68: ApiKey("ConsumerGroupHeartbeat", 1, 0),
    69: ApiKey("ConsumerGroupDescribe", 1, 0),
    70: ApiKey("ControllerRegistration", 0, 0),
    71: ApiKey("GetTelemetrySubscriptions", 0, 0),
    72: ApiKey("PushTelemetry", 0, 0),
    73: ApiKey("AssignReplicasToDirs", 0, 0),
    74: ApiKey("ListConfigResources", 1, 0),
    75: ApiKey("DescribeTopicPartitions", 0, 0),
    76: ApiKey("ShareGroupHeartbeat", 1, 0),
    77: ApiKey("ShareGroupDescribe", 1, 0),
    78: ApiKey("ShareFetch", 2, 0),
    79: ApiKey("ShareAcknowledge", 2, 0),
    80: ApiKey("AddRaftVoter", 1, 0),
    81: ApiKey("RemoveRaftVoter", 0, 0),
    82: ApiKey("UpdateRaftVoter", 0, 0),
    83: ApiKey("InitializeShareGroupState", 0, 0),
    84: ApiKey("ReadShareGroupState", 0, 0),
    85: ApiKey("WriteShareGroupState", 1, 0),
    86: ApiKey("DeleteShareGroupState", 0, 0),
    87: ApiKey("ReadShareGroupStateSummary", 1, 0),
    88: ApiKey("StreamsGroupHeartbeat", 1, 0),
    89: ApiKey("StreamsGroupDescribe", 1, 0),
    90: ApiKey("DescribeShareGroupOffsets", 1, 0),
    91: ApiKey("AlterShareGroupOffsets", 0, 0),
    92: ApiKey("DeleteShareGroupOffsets", 0, 0),
    93: ApiKey("StreamsGroupTopologyDescriptionUpdate", 0, 0),
    94: ApiKey("UnregisterController", 0, 0),
}


def api_name(key: int) -> str:
    """The name of an API as in the message definitions ("OffsetCommit"), or "Key 97" for one that is not known."""
    known = API_KEYS.get(key)
    return known.name if known else f"Key {key}"
