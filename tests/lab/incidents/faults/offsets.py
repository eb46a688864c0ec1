"""Stored offsets and log ends that are moved under a group: by an operator, by deletions, by a topic made anew."""

from __future__ import annotations

from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults.members import BEHIND, REBALANCED, REFUSED
from tests.lab.incidents.incident import Client, Incident

MOVED = ("KAF101", "KAF103", "KAF106", "KAF113", "KAF114", "KAF120", "KAF121", "KAF309")
RATE = 40


class Stopped:
    """A group that worked and was stopped in order, while its producer goes on."""

    def __init__(self, it: Incident, *, reset: str = "earliest", partitions: int = 2) -> None:
        self.it = it
        (self.topic,) = it.topics(partitions)
        self.partitions = range(partitions)
        self.group = it.world.names.group()
        self.work = {"reset": reset, "commit": "auto"}
        self.library = it.library()
        self.protocol = it.protocol(self.library)
        self.operator = {"client_id": it.world.names.client(), "host": it.new_host()}
        if it.rng.random() < 0.6:
            it.begin()
            begun = True
        else:
            begun = False
        self.feed = it.sender(self.topic, f"rate={RATE}")
        self.before = it.member(self.group, [self.topic], self.library, protocol=self.protocol, **self.work)
        it.seconds(5, 8)
        if not begun:
            it.begin()
            it.seconds(3, 5)
        self.before.process.terminate()

    def operate(self, what: str, *words: str) -> dict[str, object]:
        """Let the operator do it now."""
        self.it.from_now()
        return self.it.operate(what, f"group={self.group}", f"topic={self.topic}", *words, **self.operator)

    def state(self) -> dict[str, object]:
        """Return what is stored and where the log ends, as the admin API says from another host."""
        return self.it.operate("describe", f"groups={self.group}", f"topics={self.topic}", client_id="lab-look")[
            "answer"
        ]

    def places(self, offset: int) -> str:
        """Return the word that names all partitions with one offset."""
        return "offsets=" + ",".join(f"{number}:{offset}" for number in self.partitions)

    def again(self) -> Client:
        """Start the member again, and let it work."""
        self.it.until_now()
        after = self.it.member(
            self.group,
            [self.topic],
            self.library,
            protocol=self.protocol,
            host=self.before.host,
            client_id=self.before.client_id,
            **self.work,
        )
        self.it.seconds(6, 10)
        return after

    def is_about(self, fault_words: str, expected: list[str], after: Client, **more: object) -> None:
        """Say it of the operator."""
        address = self.it.world.hosts[self.operator["host"]].address
        who = {"client_id": self.operator["client_id"], "address": address}
        self.it.is_about(
            fault_words,
            who,
            expected,
            (*MOVED, *BEHIND, *REBALANCED),
            [self.before, after, self.feed],
            group=self.group,
            topic=self.topic,
            partitions=[f"{self.topic}-{n}" for n in self.partitions],
            **more,
        )


@fault()
def offsets_reset_back(it: Incident) -> None:
    """An operator sets the offsets of a stopped group back: records are read again."""
    stopped = Stopped(it)
    stopped.operate("reset", stopped.places(it.rng.randrange(0, 20)))
    stopped.is_about(
        "an operator set the offsets of a stopped group back", ["KAF103", "KAF114", "KAF309"], stopped.again()
    )


@fault()
def offsets_reset_forward(it: Incident) -> None:
    """An operator sets the offsets of a stopped group forward: records are never read."""
    stopped = Stopped(it)
    it.seconds(4, 6)
    ends = it.operate("describe", f"groups={stopped.group}", f"topics={stopped.topic}", client_id="lab-look")["answer"][
        "ends"
    ]
    places = "offsets=" + ",".join(f"{number}:{ends[f'{stopped.topic}-{number}'][1]}" for number in stopped.partitions)
    stopped.operate("reset", places)
    stopped.is_about("an operator set the offsets of a stopped group forward", ["KAF121", "KAF309"], stopped.again())


@fault()
def group_deleted(it: Incident) -> None:
    """A stopped group is deleted: it begins at auto.offset.reset, all is read again or the gap is never read."""
    reset = it.rng.choice(("earliest", "latest"))
    stopped = Stopped(it, reset=reset)
    it.seconds(3, 5)
    stopped.operate("delete_group")
    stopped.is_about(
        f"a stopped group was deleted and began again at {reset}",
        ["KAF121", "KAF309", "KAF114", "KAF103"],
        stopped.again(),
        reset=reset,
    )


@fault()
def offsets_deleted(it: Incident) -> None:
    """The offsets of a topic of a stopped group are deleted."""
    reset = it.rng.choice(("earliest", "latest"))
    stopped = Stopped(it, reset=reset)
    it.seconds(3, 5)
    stopped.operate("delete_offsets", stopped.places(0))
    stopped.is_about(
        f"the offsets of a stopped group were deleted and it began again at {reset}",
        ["KAF121", "KAF309", "KAF114", "KAF103"],
        stopped.again(),
        reset=reset,
    )


@fault()
def offsets_expired(it: Incident) -> None:
    """A group is stopped for longer than the broker keeps its offsets (a minute here)."""
    reset = it.rng.choice(("earliest", "latest"))
    stopped = Stopped(it, reset=reset)
    it.from_now()
    it.seconds(68, 72)
    after = stopped.again()
    it.is_about(
        f"the offsets of a stopped group expired and it began again at {reset}",
        after,
        ["KAF121", "KAF114"],
        (*MOVED, *BEHIND, *REBALANCED),
        [stopped.before, after, stopped.feed],
        topic=stopped.topic,
        reset=reset,
    )


@fault()
def log_start_moved(it: Incident) -> None:
    """DeleteRecords moves the log start past the stored offsets of a stopped group."""
    stopped = Stopped(it)
    it.seconds(6, 8)
    before = stopped.state()
    ends = before["ends"]
    assert isinstance(ends, dict)
    places = "offsets=" + ",".join(f"{number}:{ends[f'{stopped.topic}-{number}'][1]}" for number in stopped.partitions)
    stopped.operate("records", places)
    stopped.is_about("records were deleted that a stopped group had not read", ["KAF121", "KAF309"], stopped.again())


@fault(backdrop_restart=False)
def topic_recreated(it: Incident) -> None:
    """A topic is deleted and made again under its consumers."""
    (topic,) = it.topics(2)
    group, library = it.world.names.group(), it.library("java", "librdkafka", "franz", "kafka_python")
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    it.begin()
    feed = it.sender(topic, f"rate={RATE}", "topic.metadata.refresh.interval.ms=2000")
    member = it.member(group, [topic], library)
    it.seconds(6, 9)
    it.from_now()
    it.operate("delete", f"topic={topic}", **operator)
    it.seconds(1, 3)
    it.operate("create", f"topics={topic}:2", **operator)
    it.until_now()
    it.seconds(12, 16)
    who = {"client_id": operator["client_id"], "address": it.world.hosts[operator["host"]].address}
    it.is_about(
        "a topic was deleted and made again under its consumers and producers",
        who,
        ["KAF316", "KAF309"],
        (*MOVED, *BEHIND, *REBALANCED, *REFUSED, "KAF201", "KAF205", "KAF301", "KAF313", "KAF315"),
        [member, feed],
        group=group,
        topic=topic,
    )


@fault(libraries=("java", "librdkafka"))
def partitions_added_latest(it: Incident) -> None:
    """Partitions are added, records are written to them before a consumer with reset latest knows: never read."""
    (topic,) = it.topics(2)
    group, library = it.world.names.group(), it.library("java", "librdkafka")
    name = "metadata.max.age.ms=9000" if library == "java" else "topic.metadata.refresh.interval.ms=9000"
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    it.begin()
    feed = it.sender(topic, f"rate={RATE}", "topic.metadata.refresh.interval.ms=1500")
    member = it.member(group, [topic], library, protocol="classic", reset="latest", settings=(name,))
    it.seconds(5, 7)
    it.from_now()
    it.operate("partitions", f"topic={topic}", "partitions=4", **operator)
    it.seconds(18, 22)
    it.is_about(
        "partitions were added and read from their end: what was written before is never read",
        member,
        ["KAF121"],
        (*REBALANCED, *BEHIND, "KAF309"),
        [member, feed],
        topic=topic,
        partitions=[f"{topic}-2", f"{topic}-3"],
    )
    it.truth["affected"]["clients"].append(
        {"client_id": operator["client_id"], "address": it.world.hosts[operator["host"]].address}
    )
