"""Client ids of Kafka's brokers, which ask each other, too: they are no likes of applications.

In: nothing. Out: the prefixes, and SQL that tells such a request of `exchanges`.
Source: kafka.server.ReplicaFetcherThread (`broker-1-fetcher-0`), NodeToControllerChannelManager, KafkaRaftClient
(`raft-client-1`).
"""

from __future__ import annotations

from wirewitness.analyser.tables.queries import literal

PREFIXES = ("broker-", "raft-client-", "node-")
IS_OF_A_BROKER = "coalesce(protocol = 'kafka' and ({}), false)".format(
    " or ".join(f"starts_with(client_id, {literal(prefix)})" for prefix in PREFIXES)
)
