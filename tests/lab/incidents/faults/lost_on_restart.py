"""What a restart loses: the place in a topic, a store of state; and a copied setting that leads to the wrong broker."""

from __future__ import annotations

import re

from tests.lab import kafka
from tests.lab.clients import old
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Incident


@fault(libraries=("librdkafka",), backdrop_restart=False)
def end_at_each_rebalance(it: Incident) -> None:
    """Members seek to the end whenever partitions are assigned: what came during each rebalance is never read."""
    (topic,) = it.topics(4)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=60")
    command = programs.librdkafka(it, "from_end", f"group.id={group}", f"topics={topic}", "session.timeout.ms=8000",
                                  "heartbeat.interval.ms=1000")  # fmt: skip
    members = [it.add(command, "librdkafka", group=group, topics=(topic,)) for _ in range(2)]
    members[0].process.wait_for_event("session", timeout_s=30)
    it.seconds(9, 10)
    it.from_now()
    last = members[1]
    for _ in range(3):
        last.process.kill()
        it.seconds(10, 11)
        last = it.add(command, "librdkafka", group=group, topics=(topic,), client_id=last.client_id, host=last.host)
        it.seconds(3, 4)
    it.is_told(
        "members seek to the end at each rebalance: what was written meanwhile is never read", {"group": group},
        [told.any_of(told.name(group), told.client(members[0]), told.client(members[1]))],
        r"never read|not read|unread|skip|jump|passed over|left out|lost|gap|missed|latest|to the end|log end|forward",
        affected=[feed, *members], never=[r"(?i)an operator"], any=[one.identity() for one in members],
    )  # fmt: skip


@fault(backdrop_restart=False)
def state_lost_at_each_start(it: Incident) -> None:
    """A Streams application keeps its state in no volume: at each start it reads the whole changelog back."""
    source, target = it.topics(2, 2)
    name, client_id, host = it.world.names.group(), it.world.names.client(), it.new_host()
    feed = it.sender(source, "rate=60", "size=200")

    def start() -> None:
        made.append(it.add(
            lambda client: old.streams_command(
                f"bootstrap.servers={it.world.endpoint}", f"client.id={client}", f"application.id={name}",
                "replication.factor=1", "commit.interval.ms=2000", f"topic={source}", f"target={target}",
                f"state.dir={it.logs}/streams-{len(made)}", "auto.offset.reset=earliest", "num.stream.threads=1",
                "session.timeout.ms=6000", "heartbeat.interval.ms=1500",
            ),
            "java", group=name, topics=(source, target), client_id=client_id, host=host,
        ))  # fmt: skip
        made[-1].process.wait_for_event("session", timeout_s=90)

    made: list = []  # type: ignore[type-arg]
    start()
    it.seconds(16, 18)
    it.begin()
    it.seconds(5, 6)
    it.from_now()
    for _ in range(3):
        made[-1].process.terminate()
        it.seconds(1, 2)
        start()
        it.seconds(5, 7)
    it.is_told(
        "an application reads its whole changelog back at each start", made[0],
        # The clients of an application put words of their own behind its client id.
        [told.any_of(told.client(made[0]), told.name(name), "changelog", re.escape(client_id))],
        r"from (?:the|its) (?:beginning|start)|again|whole|all of|changelog|re-?read|repeat|each start|restor|earliest"
        r"|log start|restart",
        affected=[feed, *made], never=[told.accusing(feed.client_id)], least="info",
    )  # fmt: skip


@fault(libraries=("librdkafka",), backdrop_restart=False)
def advertises_its_neighbour(it: Incident) -> None:
    """Broker 2 was set up from broker 1's file and advertises its address: what is for 2 goes to 1, refused (6)."""
    hosts, nodes = it.brokers(2, "offsets.topic.replication.factor=2")
    topic = it.world.names.topic()
    it.operate("create", f"topics={topic}:4", "copies=1", broker=nodes[0].endpoint)
    wrong = f"advertised.listeners=PLAINTEXT://{nodes[0].endpoint}"
    nodes[1].stop()
    nodes[1].change(wrong)
    nodes[1].start()
    servers = ",".join(node.endpoint for node in nodes)
    it.begin(everywhere=True)
    it.from_now()
    feed = it.sender(topic, "rate=40", "message.timeout.ms=120000", broker=servers)
    member = it.member(it.world.names.group(), [topic], "librdkafka", broker=servers, protocol="classic",
                       session_ms=20_000, wait=False)  # fmt: skip
    it.seconds(30, 34)
    it.notes.append(f"brokers at {hosts}, {wrong}, port {kafka.PORT}")
    it.is_told(
        "a broker advertises the address of another one", {"server": nodes[1].endpoint},
        [told.any_of(*(told.name(node.host.address) for node in nodes), told.name(topic),
                     r"(?:broker|node|server)s? [12]")],
        r"NOT_LEADER|NOT_COORDINATOR|\b6\b|\b16\b|wrong broker|same address|advertis|not the leader|two brokers|both"
        r"|one address|not lead|does not lead|coordinator|metadata",
        affected=[feed, member], topic=topic, any=[{"server": nodes[0].endpoint}],
    )  # fmt: skip
    it.truth["cluster_wide"] = True
