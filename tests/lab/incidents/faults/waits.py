"""Who waits for whom: acknowledgements, settings of fetches, quotas, rebalances, brokers and links."""

from __future__ import annotations

from tests.lab import clients
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.incident import Incident
from tests.lab.incidents.world import PASSWORD, SASL_PORT, USER
from tests.lab.slow_link import gets_slowly

SLOW_FETCHER = ("replica.fetch.wait.max.ms=3000", "replica.fetch.min.bytes=10000000")
USUAL_FETCHER = ("replica.fetch.wait.max.ms=500", "replica.fetch.min.bytes=1")
AS_USER = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", f"sasl.username={USER}",
           f"sasl.password={PASSWORD}")  # fmt: skip
STOOD = (
    r"stood still|frozen|froze|did not answer|answered nobody|answered nothing|no answer|unanswered|paused|stall|silent"
)


@fault(world="cluster", libraries=("librdkafka",), backdrop_restart=False)
def acks_wait_for_follower(it: Incident) -> None:
    """A follower fetches every three seconds: acks=all waits for it, acks=1 to the same partitions does not."""
    slow = it.world.server.nodes[2]
    slow.stop()
    slow.change(*SLOW_FETCHER)
    slow.start()

    def restored() -> None:
        slow.stop()
        slow.change(*USUAL_FETCHER)
        slow.start()

    it.later(restored)
    it.seconds(5, 6)
    topic = it.world.names.topic()
    it.start(
        "place", "ops",
        clients.python_command("librdkafka_admin", "place", f"bootstrap.servers={it.world.endpoint}", "client.id=setup",
                               f"topic={topic}", "replicas=1:3,2:3"),
    ).finish(60)  # fmt: skip
    it.begin()
    it.from_now()
    safe = it.sender(topic, "rate=10", "request.required.acks=-1")
    fast = it.add(
        programs.librdkafka(it, "stamp", f"topic={topic}", "rate=10", "request.required.acks=1"), "librdkafka",
        topics=(topic,),
    )  # fmt: skip
    it.seconds(28, 32)
    it.is_told(
        "acks=all waits for a slow follower", {"server": slow.endpoint, "node": slow.number}, [r"acks"],
        r"replica|follower|in[- ]sync", affected=[safe, fast],
        never=[rf"{told.name(fast.client_id)}[^.]*(?:slow|waits)"],
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault()
def waits_for_bytes(it: Incident) -> None:
    """A reader asks for a megabyte or eight seconds (fetch.min.bytes): records reach it seconds after others."""
    (topic,) = it.topics(2)
    it.begin()
    feed = it.sender(topic, "rate=20")
    good = it.member(it.world.names.group(), [topic], "franz")
    it.from_now()
    group = it.world.names.group()
    bad = it.add(programs.kafkajs(it, "work", f"topic={topic}", f"group={group}", "min_bytes=1000000",
                                  "max_wait_ms=8000"), "kafkajs", group=group, topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("session", timeout_s=40)
    it.seconds(32, 36)
    it.is_told(
        "a reader waits eight seconds for a megabyte", bad, [told.any_of(told.client(bad), told.name(group))],
        r"min[._]?bytes|max[._]?wait|waits? for (?:more )?bytes|minimum", affected=[bad],
        never=[told.client(good), told.client(feed)], least="info",
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def quota_of_a_user_shared(it: Incident) -> None:
    """A user's quota is used up by one client: another of the same user is throttled with it."""
    (topic,) = it.topics(2)
    broker = f"{it.world.hosts['broker'].address}:{SASL_PORT}"
    quota = clients.java_command("quota", f"bootstrap.servers={it.world.endpoint}", "client.id=setup",
                                 f"entity={USER}", "kind=user", "rate=60000")  # fmt: skip
    it.start("quota", "ops", quota).finish(60)
    lifted = [*quota[:-1], "rate=100000000"]
    it.later(lambda: it.start("quota-lifted", "ops", lifted).finish(60))
    it.begin()
    small = it.sender(topic, "rate=5", *AS_USER, broker=broker)
    it.seconds(4, 5)
    it.from_now()
    bulk = it.sender(topic, "rate=120", "size=1000", *AS_USER, broker=broker)
    it.seconds(22, 25)
    it.is_told(
        "one client uses up the quota of a user, another is throttled with it", bulk, [told.client(bulk)],
        r"throttl|quota", affected=[small, bulk], user=USER,
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def one_holds_rebalance(it: Incident) -> None:
    """Rebalances of a group take under a second; since a slow member is in it they wait for it."""
    (topic,) = it.topics(6)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=40")
    how = {"session_ms": 10_000, "protocol": "classic", "assignor": "range"}
    good = [it.member(group, [topic], "kafka_python", **how) for _ in range(2)]  # type: ignore[arg-type]
    it.seconds(3, 4)
    slow = it.member(group, [topic], "kafka_python", handle_ms=300, settings=("max_poll_records=40",), **how)  # type: ignore[arg-type]
    it.seconds(6, 7)
    it.from_now()
    good[1].process.terminate()
    it.seconds(15, 16)
    late = it.member(group, [topic], "kafka_python", host=good[1].host, client_id=good[1].client_id, wait=False, **how)  # type: ignore[arg-type]
    it.seconds(14, 15)
    it.is_told(
        "a rebalance waits for one member that is busy with its records", slow, [told.client(slow)],
        r"rebalanc.*(?:wait|took|holds|held|late)|(?:wait|took|holds|held|late)\b.*rebalanc",
        affected=[feed, slow, late, *good], never=[rf"{told.name(good[0].client_id)}[^.]*(?:holds|held|keeps)"],
    )  # fmt: skip


@fault(libraries=("librdkafka",), backdrop_restart=False)
def frozen_before_two(it: Incident) -> None:
    """A broker with two clients stands still for six seconds."""
    other = Other(it)
    other.begin()
    both = other.around()
    it.seconds(8, 10)
    it.from_now()
    other.node.freeze()
    it.seconds(6, 7)
    other.node.thaw()
    it.until_now()
    it.seconds(10, 12)
    it.is_told(
        "a broker stood still for six seconds before two clients", {"server": other.broker, "node": 1},
        [told.any_of(told.name(other.node.host.address), "broker 1", "node 1")], STOOD, affected=both,
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(libraries=("franz", "librdkafka"))
def reads_over_slow_link(it: Incident) -> None:
    """A reader's link takes fewer bytes a second than its topic gets: its fetches take seconds, it falls behind."""
    (topic,) = it.topics(2)
    it.begin()
    feed = it.sender(topic, "rate=100", "size=800")
    good = it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic")
    it.from_now()
    host, group = it.new_host(), it.world.names.group()
    with gets_slowly(it.world.hosts, host, 400):
        bad = it.member(group, [topic], it.library("franz", "librdkafka"), host=host, protocol="classic",
                        session_ms=20_000)  # fmt: skip
        it.seconds(28, 32)
    it.is_told(
        "a reader's link is slower than its topic", bad, [told.any_of(told.client(bad), told.name(group))],
        r"link|path|network|slow|behind|lag|bandwidth|window|takes", affected=[feed, bad], never=[told.client(good)],
    )  # fmt: skip
    it.truth["sides"] = ["network"]
