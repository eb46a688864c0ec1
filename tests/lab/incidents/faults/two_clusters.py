"""Clients between two clusters."""

from __future__ import annotations

from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.incident import SECOND_CLUSTER_ID, Incident


@fault(backdrop_restart=False)
def bootstrap_of_two_clusters(it: Incident) -> None:
    """bootstrap.servers names a broker of production and one of staging: each start of a job is at one or the other."""
    (topic,) = it.topics(2)
    _, staging = it.second_cluster()
    it.operate("create", f"topics={topic}:2", "copies=1", broker=staging)
    it.begin(everywhere=True)
    feed = it.sender(topic, "rate=20")
    test = it.sender(topic, "rate=2", "rounds=1", broker=staging)
    it.from_now()
    both = f"{it.world.endpoint},{staging}"
    client_id, host = it.world.names.client(), it.new_host()
    started = []
    for _ in range(8):
        started.append(it.sender(topic, "rate=10", broker=both, client_id=client_id, host=host, wait=False))
        it.seconds(3.5, 4.5)
        started[-1].process.terminate()
    bad = started[0]
    it.is_told(
        "a client has brokers of two clusters in its bootstrap list", bad, [told.any_of(told.client(bad), "cluster")],
        rf"two clusters|cluster ids?|different clusters|another cluster|other cluster|{SECOND_CLUSTER_ID}|both cl",
        affected=[bad, feed, test],
    )  # fmt: skip
    it.truth["cluster_wide"] = True
