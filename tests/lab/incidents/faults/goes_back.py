"""What goes back: truncated logs, stored offsets that are written over, readers that begin again."""

from __future__ import annotations

import time

from tests.lab import clients
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Incident


@fault(world="cluster", libraries=("librdkafka", "java"), backdrop_restart=False)
def unclean_leader(it: Incident) -> None:
    """A replica that was out of sync becomes leader: acknowledged records are gone, readers go back."""
    topic = it.world.names.topic()
    it.start(
        "place", "ops",
        clients.python_command("librdkafka_admin", "place", f"bootstrap.servers={it.world.endpoint}", "client.id=setup",
                               f"topic={topic}", "replicas=2:3", "settings=unclean.leader.election.enable:true"),
    ).finish(60)  # fmt: skip
    leader, follower = it.world.server.nodes[1], it.world.server.nodes[2]
    it.begin()
    feed = it.sender(topic, "rate=40", "acks=1", "message.timeout.ms=120000")
    member = it.member(it.world.names.group(), [topic], it.library("librdkafka", "java"), protocol="classic",
                       session_ms=25_000)  # fmt: skip
    it.seconds(4, 5)
    follower.stop()
    it.seconds(7, 8)
    it.from_now()
    leader.stop(timeout_s=0)
    follower.start()
    time.sleep(14)
    leader.start()
    it.until_now()
    it.seconds(4, 5)
    it.is_told(
        "a replica that was out of sync became leader: acknowledged records are gone",
        {"topic": topic, "partition": 0}, [told.partition(topic, 0)],
        r"truncat|unclean|diverg|cut|records (?:are )?(?:lost|gone)|went back|log end (?:fell|went)|shorter|lost",
        affected=[feed, member], never=[r"(?i)by itself", r"(?i)an operator"], topic=topic, partition=0,
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(libraries=("librdkafka",))
def reset_written_over(it: Incident) -> None:
    """An operator sets offsets back while the job works: its next commit writes over them, nothing is read again."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    it.begin()
    feed = it.sender(topic, "rate=40")
    job = it.add(programs.librdkafka(it, "assign", f"group.id={group}", f"topic={topic}", "partitions=0,1"),
                 "librdkafka", group=group, topics=(topic,))  # fmt: skip
    it.seconds(9, 11)
    it.from_now()
    it.operate("reset", f"group={group}", f"topic={topic}", "offsets=0:0,1:0", **operator)
    it.seconds(10, 13)
    who = {"client_id": operator["client_id"], "address": it.world.hosts[operator["host"]].address}
    it.is_told(
        "a reset of offsets was written over by the job's next commit", who,
        [told.any_of(told.name(operator["client_id"]), told.name(group))],
        r"overwr|written over|was lost|replaced|undone|without effect|committed over|no effect|in vain",
        affected=[feed, job], never=[r"(?i)(?:are|were) (?:read|delivered) again"], least="info", group=group,
    )  # fmt: skip
    it.truth["affected"]["clients"].append(who)


@fault(libraries=("librdkafka",))
def beginning_at_each_rebalance(it: Incident) -> None:
    """Members seek to the beginning whenever partitions are assigned: each rebalance reads all again."""
    (topic,) = it.topics(4)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=40")
    command = programs.librdkafka(it, "from_beginning", f"group.id={group}", f"topics={topic}",
                                  "session.timeout.ms=8000", "heartbeat.interval.ms=1000")  # fmt: skip
    first = it.add(command, "librdkafka", group=group, topics=(topic,))
    first.process.wait_for_event("session", timeout_s=30)
    it.seconds(6, 7)
    it.from_now()
    client_id, host = it.world.names.client(), it.new_host()
    others = []
    for _ in range(3):
        one = it.add(command, "librdkafka", group=group, topics=(topic,), client_id=client_id, host=host)
        one.process.wait_for_event("session", timeout_s=30)
        others.append(one)
        it.seconds(4, 5)
        one.process.terminate()
        it.seconds(3, 4)
    it.is_told(
        "members read from the beginning at each rebalance", first,
        [told.any_of(told.client(first), told.name(group), told.client(others[0]))],
        r"beginning|earliest|again|log start|went back|turned back|goes back|back to|below",
        affected=[feed, first, *others], never=[r"(?i)an operator"],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def two_readers_one_group(it: Incident) -> None:
    """Two applications assign themselves the same partitions and commit for one group: its offsets jump to and fro."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=50")
    words = (f"group.id={group}", f"topic={topic}", "partitions=0,1")
    first = it.add(programs.librdkafka(it, "assign", *words), "librdkafka", group=group, topics=(topic,))
    it.seconds(10, 12)
    it.from_now()
    second = it.add(programs.librdkafka(it, "assign", *words, "from=beginning", "handle_ms=25"), "librdkafka",
                    group=group, topics=(topic,))  # fmt: skip
    it.seconds(18, 21)
    it.is_told(
        "two clients commit for the same partitions of one group in turn", second,
        [told.any_of(told.name(group), told.partition(topic, 0, 1)), told.client(second)],
        r"two|both|another|in turn|turns|each other|back|below|same", affected=[feed, first, second],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def deleted_before_reader(it: Incident) -> None:
    """Records are deleted before a slow reader came to them; it has auto.offset.reset=latest and goes to the end."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    it.begin()
    member = it.member(group, [topic], "kafka_python", reset="latest", handle_ms=150, protocol="classic",
                       fetch_bytes=2000, settings=("max_poll_records=5",))  # fmt: skip
    feed = it.sender(topic, "rate=60", "size=200")
    it.seconds(13, 15)
    it.from_now()
    for _ in range(2):
        state = it.operate("describe", f"groups={group}", f"topics={topic}", **operator)["answer"]["ends"]
        places = ",".join(f"{number}:{state[f'{topic}-{number}'][1] - 20}" for number in (0, 1))
        it.operate("records", f"topic={topic}", f"offsets={places}", **operator)
        it.seconds(9, 10)
    who = {"client_id": operator["client_id"], "address": it.world.hosts[operator["host"]].address}
    it.is_told(
        "records were deleted before a slow reader came to them", who, [told.partition(topic, 0, 1)],
        r"delet|retention|log start|out of range|OFFSET_OUT_OF_RANGE|never read|lost|skipped",
        affected=[feed, member], never=[r"(?i)by itself"], topic=topic, group=group,
    )  # fmt: skip
    it.truth["affected"]["clients"].append(who)
