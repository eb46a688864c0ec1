"""What an operator's work leaves behind: leaders on one broker, a limit on copies, a client at an old address."""

from __future__ import annotations

from tests.lab import clients, firewall
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import NEARLY_ALL
from tests.lab.incidents.incident import Incident
from tests.lab.processes import LabError

SMALL_FETCHES = {"replica.fetch.max.bytes": 20_000, "replica.fetch.response.max.bytes": 40_000}


def placed(it: Incident, replicas: str) -> str:
    """Make a topic whose replicas are as said; the first of each partition leads."""
    topic = it.world.names.topic()
    command = programs.admin(it, "place", f"topic={topic}", f"replicas={replicas}")
    it.start("place", "ops", command("setup")).finish(60)
    return topic


def servers(number: int) -> str:
    """Return a pattern of a broker's number."""
    return rf"(?:broker|node|server|replica|follower|leader)s?\W+(?:id\W+)?{number}\b"


@fault(world="cluster", libraries=("librdkafka", "sarama", "java"), backdrop_restart=False)
def leaders_all_on_one_broker(it: Incident) -> None:
    """Brokers 2 and 3 are restarted in order, and nobody gives them back what they led: broker 1 leads all of it."""
    topic = placed(it, "1:2:3,2:1:3,3:1:2,1:3:2,2:1:3,3:1:2")
    nodes = it.world.server.nodes
    it.begin()
    feeds = [it.sender(topic, "rate=50", "size=400", "acks=all") for _ in range(3)]
    library = it.library("librdkafka", "sarama", "java")
    member = it.member(it.world.names.group(), [topic], library, protocol="classic", session_ms=25_000)
    it.seconds(8, 9)
    for node in nodes[1:]:
        node.stop()
        it.seconds(1, 2)
        node.start()
        it.seconds(7, 8)
    it.from_now()
    it.seconds(38, 42)
    it.is_told(
        "after restarts one broker leads all partitions, the two others none", {"server": nodes[0].endpoint, "node": 1},
        [told.any_of(told.name(nodes[0].host.address), servers(1), told.name(topic))],
        # That leaders change while brokers are restarted is not it.
        r"\b(?:im|un)?balanced?\b|skew|uneven|preferred|most of|share of|\bhot\b|more than the others"
        r"|all (?:of )?(?:the |its )?(?:partitions|traffic|bytes|requests|load|records|leaders)"
        r"|(?:leads?|leaders?|leading|led)\b[^.]*\b(?:all|every|most|alone|only|none|\d+ of \d+)"
        r"|\b(?:all|every|most|only|none|\d+ of \d+)\b[^.]*\b(?:leads?|leaders?|leading|led)\b",
        affected=[*feeds, member], topic=topic, never=[told.accusing(*(one.client_id for one in feeds))],
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(world="cluster", libraries=("librdkafka",), backdrop_restart=False)
def copies_throttled_for_ever(it: Incident) -> None:
    """A limit on replication is left from a move of partitions: a restarted broker never gets in sync again."""
    topic, slow = placed(it, "1:2:3,2:1:3"), it.world.server.nodes[2]

    def limit(rate: int) -> None:
        command = programs.admin(it, "throttle", f"topic={topic}", "number=3", f"rate={rate}")
        it.start(f"throttle-{rate}", "ops", command("setup")).finish(60)

    def restored() -> None:
        limit(1_000_000_000)
        slow.stop()
        slow.change(*(f"{name}=" for name in SMALL_FETCHES))
        slow.start()

    limit(15_000)
    it.later(restored)
    it.begin()
    feeds = [it.sender(topic, "rate=50", "size=700", "acks=all") for _ in range(2)]
    member = it.member(it.world.names.group(), [topic], "franz", protocol="classic", session_ms=25_000)
    it.seconds(8, 9)
    slow.stop()
    # A limit holds from the second fetch on: in the lab's small topic the first one would take all that is missing.
    slow.change(*(f"{name}={value}" for name, value in SMALL_FETCHES.items()))
    it.seconds(5, 6)
    slow.start()
    it.from_now()
    it.seconds(36, 40)
    state = clients.python_command("librdkafka_deploys", "in_sync", f"bootstrap.servers={it.world.endpoint}",
                                   "client.id=setup", f"topic={topic}")  # fmt: skip
    asked = it.start("in-sync", "ops", state)
    asked.finish(30)
    found = asked.events()[-1]["partitions"]
    it.notes.append(str(found))
    if all(slow.number in one["in_sync"] for one in found.values()):
        raise LabError("the replica caught up")
    it.is_told(
        "a replica on a restarted broker never gets in sync again, its copies are limited",
        {"server": slow.endpoint, "node": 3},
        [told.any_of(told.name(slow.host.address), servers(3), told.partition(topic, 0, 1), told.name(topic))],
        r"replica|follower|in[- ]sync|\bISR\b|throttl|catch|caught|behind|copies|under-?replicated",
        affected=[*feeds, member], topic=topic, never=[told.accusing(*(one.client_id for one in feeds))],
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(libraries=("java", "librdkafka"), backdrop_restart=False)
def broker_moved_client_stays(it: Incident) -> None:
    """A broker moves to another address; all clients are told and restarted but one, which knocks at the old one."""
    host, node = it.other_broker()
    old, new = it.world.hosts[host], it.world.hosts[it.new_host()]
    topic, group = it.world.names.topic(), it.world.names.group()
    it.operate("create", f"topics={topic}:3", "copies=1", broker=node.endpoint)
    it.begin(everywhere=True)
    feed = it.sender(topic, "rate=30", broker=node.endpoint)
    member = it.member(group, [topic], "franz", broker=node.endpoint, protocol="classic")
    bad = it.sender(topic, "rate=15", library=it.library("java", "librdkafka"), broker=node.endpoint)
    it.seconds(10, 12)
    for one in (feed, member):
        one.process.terminate()
    it.seconds(0.5, 1)
    it.from_now()
    node.stop()
    node.change(f"listeners=PLAINTEXT://{new.address}:9092,CONTROLLER://127.0.0.1:9093",
                f"advertised.listeners=PLAINTEXT://{new.address}:9092")  # fmt: skip
    node.host = new
    with firewall.dropping(old, it.world.hosts[bad.host].address, share=NEARLY_ALL, directions=("ingress",)):
        node.start()
        place = f"{new.address}:9092"
        it.sender(topic, "rate=30", broker=place, host=feed.host, client_id=feed.client_id)
        it.member(group, [topic], "franz", broker=place, host=member.host, client_id=member.client_id,
                  protocol="classic")  # fmt: skip
        it.seconds(38, 42)
    it.is_told(
        "a broker moved to another address, and one client goes on to knock at the old one", bad,
        [told.client(bad)],  # the broker itself is well, at another address
        r"answer|reach|connect|SYN|nobody|old address|refus|gone|moved|other address|another|silent|stopped"
        r"|no (?:more )?(?:records|requests)|knock",
        affected=[feed, member, bad], server=f"{old.address}:9092",
        never=[told.accusing(feed.client_id), told.accusing(member.client_id)],
    )  # fmt: skip
