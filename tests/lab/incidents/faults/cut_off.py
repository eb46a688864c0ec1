"""Ways and places that are cut off: one broker of three, brokers from each other, an old cluster, an older copy."""

from __future__ import annotations

import shutil

from tests.lab import clients, firewall
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import NEARLY_ALL, Other
from tests.lab.incidents.incident import SECOND_CLUSTER_ID, Incident


@fault(world="cluster", libraries=("librdkafka",), backdrop_restart=False)
def one_broker_blocked(it: Incident) -> None:
    """A firewall lets a new host reach two brokers of three: its producer loses what is for the third."""
    (topic,) = it.topics(6, copies=3)
    third, host = it.world.server.nodes[2], it.new_host()
    it.begin()
    feed = it.sender(topic, "rate=40")
    member = it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic", session_ms=20_000)
    it.seconds(4, 5)
    it.from_now()
    with firewall.dropping(third.host, it.world.hosts[host].address, share=NEARLY_ALL, directions=("ingress",)):
        bad = it.sender(topic, "rate=40", "message.timeout.ms=8000", host=host)
        it.seconds(32, 36)
    it.is_told(
        "a client reaches two brokers of three: the way to the third is closed", bad,
        [told.any_of(told.client(bad), told.name(third.host.address), rf"(?:broker|node|server) {third.number}")],
        r"SYN|reach|no answer|not answer|unanswered|without an answer|connect|block|firewall|drop|attempt"
        r"|only \d of|fail|nothing for|no records",
        affected=[bad], never=[told.accusing(feed.client_id), told.accusing(member.client_id)],
        server=third.endpoint, any=[bad.identity(), {"server": third.endpoint}],
    )  # fmt: skip
    it.truth["sides"] = ["client", "network", "server"]


@fault(world="cluster", libraries=("librdkafka",), backdrop_restart=False)
def brokers_cut_from_each_other(it: Incident) -> None:
    """Broker 3 loses its way to the other two; clients still reach it, and what they write there is not taken."""
    (topic,) = it.topics(6, copies=3, settings="min.insync.replicas:2")
    one, two, third = it.world.server.nodes
    it.begin()
    feed = it.sender(topic, "rate=40", "acks=all", "message.timeout.ms=120000")
    member = it.member(it.world.names.group(), [topic], it.library("franz", "librdkafka"), protocol="classic",
                       session_ms=25_000)  # fmt: skip
    it.seconds(8, 9)
    it.from_now()
    cut = third.host.address
    with firewall.dropping(one.host, cut, share=NEARLY_ALL), firewall.dropping(two.host, cut, share=NEARLY_ALL):
        it.seconds(24, 27)
    it.until_now()
    it.seconds(12, 14)
    it.is_told(
        "a broker is cut off from the other brokers, not from the clients", {"server": third.endpoint},
        [told.any_of(told.name(cut), rf"(?:broker|node|server) {third.number}", told.name(topic))],
        r"replica|in[- ]sync|\bISR\b|leader|unreach|no answer|not answer|unanswered|without an answer|retransm|cut off"
        r"|NOT_LEADER|NOT_ENOUGH|time-?out|TIMED_OUT|refus|connect|silent|\bSYN\b",
        affected=[feed, member], topic=topic,
    )  # fmt: skip
    it.truth["cluster_wide"] = True
    it.truth["sides"] = ["server", "network"]


@fault(libraries=("librdkafka",), backdrop_restart=False)
def left_behind_at_old_cluster(it: Incident) -> None:
    """A move to a new cluster: readers and two producers are there, the third still writes to the old one."""
    (topic,) = it.topics(2)
    _, new = it.second_cluster()
    it.operate("create", f"topics={topic}:2", "copies=1", broker=new)
    group, library = it.world.names.group(), it.library("franz", "sarama")
    it.begin(everywhere=True)
    feeds = [it.sender(topic, "rate=20") for _ in range(3)]
    member = it.member(group, [topic], library, protocol="classic")
    it.seconds(8, 10)
    it.from_now()
    member.process.terminate()
    it.member(group, [topic], library, protocol="classic", broker=new, host=member.host, client_id=member.client_id)
    for one in feeds[:2]:
        one.process.terminate()
        it.sender(topic, "rate=20", broker=new, host=one.host, client_id=one.client_id)
        it.seconds(0.5, 1)
    it.seconds(30, 34)
    bad = feeds[2]
    it.is_told(
        "a producer stayed at the old cluster, where nobody reads", bad,
        [told.any_of(told.client(bad), told.name(group), told.name(it.world.endpoint))],
        r"nobody|no (?:reader|consumer|group|member|one)|not read|unread|never read|two clusters|other cluster"
        r"|another cluster|different clusters|old cluster|only (?:one|client|producer)|still|stopped reading"
        r"|behind|lag",
        affected=[bad, *feeds, member], topic=topic,
    )  # fmt: skip


@fault(libraries=("franz", "librdkafka"), backdrop_restart=False)
def restored_from_older_copy(it: Incident) -> None:
    """A broker's disk is replaced by a copy of an hour ago: its log ends lower than what its group has committed."""
    other = Other(it)
    data = it.world.directory / f"{it.name}-{SECOND_CLUSTER_ID[-3:]}" / "data"
    library, group = it.library("franz", "librdkafka"), it.world.names.group()
    how = {"broker": other.broker, "protocol": "classic", "session_ms": 20_000}
    feed = it.sender(other.topic, "rate=80", "acks=1", broker=other.broker)
    first = it.member(group, [other.topic], library, **how)  # type: ignore[arg-type]
    it.seconds(8, 9)
    first.process.terminate()
    feed.process.terminate()
    other.node.stop()
    shutil.copytree(data, data.with_name("copy"))
    other.node.start()
    other.begin()
    writes = {"broker": other.broker, "host": feed.host, "client_id": feed.client_id}
    reads = {**how, "host": first.host, "client_id": first.client_id}
    feed = it.sender(other.topic, "rate=80", "acks=1", **writes)  # type: ignore[arg-type]
    member = it.member(group, [other.topic], library, **reads)  # type: ignore[arg-type]
    it.seconds(14, 16)
    it.from_now()
    other.node.stop()
    shutil.rmtree(data)
    shutil.copytree(data.with_name("copy"), data)
    other.node.start()
    # What a client knows of leaders is newer than what the copy says: it takes nothing until it is started again.
    feed.process.terminate()
    member.process.terminate()
    it.seconds(1, 2)
    it.sender(other.topic, "rate=80", "acks=1", **writes)  # type: ignore[arg-type]
    it.member(group, [other.topic], library, **reads)  # type: ignore[arg-type]
    it.seconds(16, 18)
    it.is_told(
        "a broker came back with an older copy of its log: acknowledged records are gone",
        {"server": other.broker},
        [told.any_of(told.name(other.node.host.address), told.name(other.topic), told.client(member),
                     told.name(member.group or ""))],
        r"truncat|went back|goes back|fell|lower|shorter|lost|gone|older|out of range|OUT_OF_RANGE|beyond|past|above"
        r"|again|log end|restor|offset",
        affected=[feed, member], never=[r"(?i)an operator (?:reset|set)"], topic=other.topic,
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(libraries=("librdkafka",))
def one_at_a_time_far_away(it: Incident) -> None:
    """max.in.flight=1 and no batches on a line of 180 ms: a producer sends five records a second and gets twenty."""
    (topic,) = it.topics(1)
    it.begin()
    feed = it.sender(topic, "rate=20")
    host = it.new_host()
    it.start("far", host, clients.python_command("far_link", "90")).wait_for_event("ready")
    it.seconds(1, 2)
    it.from_now()
    bad = it.add(
        programs.chore(it, "writes", f"topic={topic}", "rate=20", "max.in.flight.requests.per.connection=1",
                       "batch.num.messages=1", "linger.ms=0", "message.timeout.ms=300000"),
        "librdkafka", host=host, topics=(topic,),
    )  # fmt: skip
    it.seconds(40, 44)
    it.is_told(
        "a producer far away waits for each answer before it sends the next record: its records come ever later", bad,
        [told.client(bad)],
        r"late|\bold\b|older|\bage\b|delay|wait|behind|in[- ]flight|at a time|round trip|latency|queue|one record|batch"
        r"|each record",
        affected=[bad], never=[told.accusing(feed.client_id), r"(?i)clock"],
    )  # fmt: skip
