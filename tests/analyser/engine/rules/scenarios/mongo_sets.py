"""Scenarios of MON143 and MON144: a replica set without a primary, a clock that is apart from others."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import SECOND, START, Row
from tests.analyser.engine.rules.scenarios.build_mongo import alone, command, hello
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

_OLD, _OTHER = "10.3.0.9:27017", "10.3.0.9:27018"


def _said(seconds: float, role: str, primary: str | None, port: int = 27017) -> Row:
    own = f"10.3.0.9:{port}"
    return hello(
        seconds, server_role=role, set_name="rs0", primary_host=primary, own_host=own, server_port=port,
        advertised_hosts=f"{_OLD},{_OTHER}", max_wire_version=21, app_name=None, driver=None, flow=f"h{port}",
    )  # fmt: skip


def without_primary(
    lasts: float = 22, named: str | None = None, clients: int = 3, silent_for: float | None = None,
    back: int = 27017, comes: bool = True,
) -> list[Row]:  # fmt: skip
    """The primary is none from second 20 on, for so long. named: whom the other member calls the primary then.

    silent_for: so long nobody writes; back: the port of the next primary; comes: there is a next one."""
    begin, end = 20.0, 20.0 + lasts
    rows = [_said(1, "primary", _OLD), _said(2, "secondary", _OLD, 27018), _said(begin, "secondary", None)]
    rows.append(_said(begin + 1, "secondary", named, 27018))
    rows += [_said(end, "primary", f"10.3.0.9:{back}", back)] if comes else []
    quiet = (begin, begin + (lasts if silent_for is None else silent_for))
    for n in range(clients):
        who = {"app_name": f"shop-{n}", "client_address": f"10.3.0.{20 + n}", "flow": f"s{n}"}
        times = [1 + k / 2 + n / 10 for k in range(110)]
        rows += [
            command(seconds, "insert", set_name="rs0", documents_sent=1, n=1, literals_id=None, **who)
            for seconds in times
            if not quiet[0] <= seconds < quiet[1]
        ]
    return rows


def clocks(*ahead: float, count: int = 20, every: float = 1, jitter: float = 0) -> list[Row]:
    """Inserts of as many clients, whose ObjectIds are so many seconds ahead; jitter: every second one more by that."""
    rows = []
    for n, seconds in enumerate(ahead):
        who = {"app_name": f"shop-{n}", "client_address": f"10.3.0.{20 + n}", "flow": f"s{n}"}
        for k in range(count):
            at_s = 1 + k * every + n / 10
            made = int(at_s + seconds + jitter * (k % 2))
            rows.append(
                command(
                    at_s,
                    "insert",
                    documents_sent=1,
                    n=1,
                    literals_id=None,
                    id_time=START // SECOND * SECOND + made * SECOND,
                    **who,
                )
            )
    return rows  # fmt: skip


SETS_FIRES: list[Scenario] = [
    fires("MON143", "warning", "it steps down and comes back late", **alone(*without_primary())),
    fires("MON143", "warning", "another one takes over late", **alone(*without_primary(back=27018))),
    fires("MON144", "warning", "an hour ahead", **alone(*clocks(3600, 0, 0))),
    fires(
        "MON144", "warning", "a minute behind, and the capture's own clock is wrong", **alone(*clocks(440, 500, 500))
    ),
]
SETS_NEAR_MISSES: list[Scenario] = [
    silent("MON143", "an election of ten seconds", **alone(*without_primary(10))),
    silent("MON143", "another one is the primary by the words of a member", **alone(*without_primary(named=_OTHER))),
    silent("MON143", "writes go on", **alone(*without_primary(silent_for=6))),
    silent("MON143", "one application only", **alone(*without_primary(clients=1))),
    silent("MON143", "no primary comes until the end", **alone(*without_primary(comes=False))),
    silent("MON144", "the clock of the capture", **alone(*clocks(3600, 3600, 3600))),
    silent("MON144", "two clients: nobody knows whose is wrong", **alone(*clocks(3600, 0))),
    silent("MON144", "nobody agrees", **alone(*clocks(3600, 0, 1800))),
    silent("MON144", "ids that were made at other times", **alone(*clocks(-300, 0, 0, jitter=60))),
    silent("MON144", "five seconds", **alone(*clocks(5, 0, 0))),
    silent("MON144", "nine inserts", **alone(*clocks(3600, 0, 0, count=9, every=2))),
]
