"""The network and the broker's machine: frozen, cut off, lossy, and connections dropped while idle."""

from __future__ import annotations

import time

from tests.lab import firewall, net
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults.members import BEHIND, READ_AGAIN, REBALANCED, REFUSED, SESSION_S, group_of_two
from tests.lab.incidents.incident import Incident

TCP = ("TCP101", "TCP102", "TCP103", "TCP104", "KAF302", "KAF303", "KAF306", "KAF111", "NET101", "NET103")


@fault(backdrop_restart=False)
def broker_frozen(it: Incident) -> None:
    """The broker's process stands still for some seconds; its kernel goes on."""
    _, _, feed, members = group_of_two(it)
    node = it.world.server.nodes[0]
    it.from_now()
    node.freeze()
    it.seconds(4, 10)
    node.thaw()
    it.until_now()
    it.seconds(8, 12)
    it.is_about(
        "the broker's process stood still",
        {"server": node.endpoint, "node": node.number},
        ["KAF303", "KAF302"],
        (*TCP, *REBALANCED, *BEHIND, *READ_AGAIN, *REFUSED, "KAF205", "KAF301"),
        [feed, *members],
    )
    it.truth["cluster_wide"] = True


@fault()
def link_down(it: Incident) -> None:
    """A client's network is gone for longer than the session timeout."""
    _, _, feed, members = group_of_two(it)
    host = it.world.hosts[members[0].host]
    it.from_now()
    net.unplug(host)
    it.seconds(SESSION_S + 5, SESSION_S + 8)
    net.plug_back(host)
    it.until_now()
    it.seconds(12, 15)
    it.is_about(
        "a client's network was gone",
        members[0],
        ["KAF127", "KAF126", "KAF111", "KAF303", "TCP101"],
        (*TCP, *REBALANCED, *BEHIND, *READ_AGAIN, *REFUSED),
        [feed, *members],
    )
    it.truth["sides"] = ["network"]


@fault()
def packet_loss(it: Incident) -> None:
    """Some per cent of a client's packets are lost."""
    (topic,) = it.topics(2)
    it.begin()
    feed = it.sender(topic, "rate=120", "rounds=20", "size=300")
    member = it.member(it.world.names.group(), [topic])
    it.seconds(2, 3)
    it.from_now()
    percent = it.rng.choice((3, 5, 8))
    with firewall.dropping(it.world.hosts["broker"], member.address, share=percent / 100):
        it.seconds(28, 34)
    it.until_now()
    it.is_about(
        f"{percent} % of a client's packets are lost",
        {"address": member.address},
        ["TCP101"],
        (*TCP, *BEHIND, *REBALANCED),
        [feed, member],
    )
    it.truth["sides"] = ["network"]


@fault()
def idle_dropped(it: Incident) -> None:
    """A firewall forgets a connection while it is idle: what the client then sends gets no answer."""
    (topic,) = it.topics(1)
    it.begin()
    sender = it.sender(
        topic,
        "idle_s=20",
        "socket.keepalive.enable=false",
        "socket.timeout.ms=10000",
        "metadata.max.age.ms=300000",
        "topic.metadata.refresh.interval.ms=-1",
    )
    sender.process.wait_for_event("idle")
    it.from_now()
    ports = firewall.local_ports(it.world.hosts[sender.host], 9092)
    time.sleep(16)
    with firewall.dropping(it.world.hosts["broker"], sender.address, ports=ports):
        it.seconds(22, 26)
    it.until_now()
    it.is_about(
        "idle connections were dropped in between",
        {"address": sender.address, "client_id": sender.client_id},
        ["NET101"],
        TCP,
        [sender],
    )
    it.truth["sides"] = ["network"]


@fault()
def host_gone(it: Incident) -> None:
    """A member's machine loses its power: not even its kernel says goodbye."""
    _, _, feed, members = group_of_two(it)
    it.from_now()
    net.unplug(it.world.hosts[members[0].host])
    members[0].process.kill()
    it.seconds(SESSION_S + 8, SESSION_S + 12)
    it.is_about(
        "a member's machine is gone",
        members[0],
        ["KAF126", "KAF111", "KAF303"],
        (*TCP, *REBALANCED, *BEHIND, *READ_AGAIN),
        [feed, *members],
    )
    it.truth["sides"] = ["client", "network"]
    it.later(lambda: net.plug_back(it.world.hosts[members[0].host]))
