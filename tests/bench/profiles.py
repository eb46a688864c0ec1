"""What is measured: kinds of captures and their sizes.

In: nothing. Out: PROFILES, by name. `full` says something about speed; `quick` shows in seconds that all works.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "exchanges",
    "ordinary",
    "real",
    "lossy",
    "records",
    "decode",
    "mongo",
    "mqtt",
    "mqtt_lossy",
    "tls",
    "archive",
    "live",
    "start",
    "irregular",
]


class Size(NamedTuple):
    """At least that many packets and bytes; flows as the generator has them where 0."""

    packets: int = 0
    size_bytes: int = 0
    flows: int = 0

    def times(self, factor: int) -> Size:
        """More packets or bytes over as many flows; more flows where nothing else is said."""
        if self.packets or self.size_bytes:
            return Size(self.packets * factor, self.size_bytes * factor, self.flows)
        return Size(flows=self.flows * factor)


class Scale(NamedTuple):
    """timing: for runs in turn; memory: the smallest of four sizes. None: not measured."""

    timing: Size | None = None
    memory: Size | None = None


class Profile(NamedTuple):
    """name; how it is measured; the capture that is replayed; sizes; how many times less processor time it should take.

    wanted: than the baseline takes; analysed: the same of `analyse`; 0 where nobody asks.
    two: how many times faster two processes should be than one, for the table and for `analyse`; 0 where nobody asks.
    report_memory: the memory of `analyse` is measured at all sizes, too.
    """

    name: str
    kind: Kind
    replayed: str
    full: Scale
    quick: Scale
    wanted: float = 0
    analysed: float = 0
    two: tuple[float, float] = (0, 0)
    report_memory: bool = False


_ALL = (
    Profile("start", "start", "", Scale(Size()), Scale(Size())),
    Profile(
        "small", "exchanges", "small",
        Scale(Size(1_000_000), Size(250_000)), Scale(Size(40_000), Size(5_000)), 10, analysed=4,
        two=(1.8, 1.7), report_memory=True,
    ),
    Profile(
        "ordinary", "ordinary", "ordinary",
        Scale(Size(1_000_000), Size(250_000)), Scale(Size(40_000), Size(5_000)), 10, analysed=6,
        two=(1.8, 1.7), report_memory=True,
    ),
    Profile("real_kafka", "real", "real_kafka", Scale(Size(130_000)), Scale(Size(15_000)), 3, analysed=1.3),
    Profile("real_kafka_long", "real", "real_kafka", Scale(Size(400_000)), Scale(Size(30_000)), 3, analysed=1.3),
    Profile("real_mongo", "real", "real_mongo", Scale(Size(130_000)), Scale(Size(15_000)), 3, analysed=1.5),
    Profile("real_mqtt", "real", "real_mqtt", Scale(Size(130_000)), Scale(Size(15_000)), 3, analysed=1.5),
    Profile(
        "bulk", "exchanges", "bulk",
        Scale(Size(0, 500_000_000), Size(0, 125_000_000)), Scale(Size(0, 20_000_000), Size(0, 5_000_000)), 10,
        two=(1.8, 0),
    ),
    Profile(
        "flows", "exchanges", "flows",
        Scale(Size(flows=50_000), Size(flows=6_250)), Scale(Size(flows=1_000), Size(flows=250)), 10, two=(1.8, 0),
        report_memory=True,
    ),
    Profile("tunnelled", "exchanges", "tunnelled", Scale(Size(400_000)), Scale(Size(15_000)), 3),
    Profile("lossy", "lossy", "lossy", Scale(Size(400_000)), Scale(Size(15_000)), 5, two=(1.8, 0)),
    Profile("half_open", "exchanges", "half_open", Scale(None, Size(flows=125_000)), Scale(None, Size(flows=5_000))),
    Profile("records", "records", "records", Scale(Size(0, 50_000_000)), Scale(Size(0, 1_000_000)), 5),
    Profile("mongo", "mongo", "mongo", Scale(Size(700_000)), Scale(Size(15_000)), 5, two=(1.8, 0)),
    Profile("mongo_compressed", "mongo", "mongo_compressed", Scale(Size(700_000)), Scale(Size(15_000)), 3),
    Profile("mqtt", "mqtt", "", Scale(Size(1_000_000)), Scale(Size(20_000)), 10, two=(1.8, 0)),
    Profile("mqtt_lossy", "mqtt_lossy", "", Scale(Size(400_000)), Scale(Size(20_000)), 5),
    Profile("tls", "tls", "bulk", Scale(Size(0, 200_000_000)), Scale(Size(0, 5_000_000)), 3, two=(1.8, 0)),
    Profile("irregular", "irregular", "", Scale(Size(600_000)), Scale(Size(5_000))),
    Profile("archive", "archive", "", Scale(Size(0, 5_200_000_000)), Scale(Size(0, 12_000_000))),
    Profile("archive_ordinary", "archive", "ordinary", Scale(Size(0, 5_000_000_000)), Scale(Size(0, 12_000_000))),
    Profile("decode", "decode", "", Scale(Size()), Scale(Size())),
    Profile("live", "live", "small", Scale(Size()), Scale(Size())),
)  # fmt: skip
PROFILES = {profile.name: profile for profile in _ALL}
