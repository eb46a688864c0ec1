"""The rules about TLS on handshakes by OpenSSL: who refuses whom, and why, with keys and without."""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence
from typing import Any

import pytest

from tests.analyser.decoding.test_tls_handshake import BOTH, KEYS, V12, V13, authority, ends
from tests.analyser.engine.rules.concerned import connected, looked_at
from tests.analyser.engine.rules.scenarios import Scenario
from tests.analyser.engine.rules.scenarios.build import at, remark, tcp_flow
from tests.conftest import SAMPLES
from tests.support.shares import proves_more, share
from tests.support.tls_failures import NAME, Ends, spoken, talk_of
from tests.support.tls_twin import Sides, twin
from tests.support.wire import SERVER, Talk, decode, packets_of
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.network.rules.capture.cap106_encrypted_share import ways_of
from wirewitness.analyser.network.rules.tls.tls102_certificate import is_for
from wirewitness.dissectors.registry import PROTOCOLS

TABLES_OF_CAP106 = ("flows", "expert_infos", "kafka_api_versions", "mongo_commands", "findings")
TABLES = ("flows", "expert_infos", "exchanges", "messages", "findings", "kafka_connections", "kafka_brokers")


def today(server: tuple[str, int] = SERVER) -> Talk:
    """Packets of a time at which the certificates are valid."""
    return Talk(server=server, ts_ns=time.time_ns())


def findings(packets: Sequence[Any], keylog: Sequence[str] = (), **options: Any) -> dict[str, dict[str, Any]]:
    """By code, those about TLS."""
    asked = ReadOptions(keylogs=tuple(keylog), **options)
    with analysis_of(decode(packets, TABLES, options=asked), TABLES, asked, PROTOCOLS.values()) as analysis:
        rows = analysis.findings().to_dict("records")
    found = [row for row in rows if row["code"].startswith("TLS")]
    assert len({row["code"] for row in found}) == len(found)
    return {row["code"]: row for row in found}


def found_in(case: str, version: ssl.TLSVersion, with_keys: bool, closed_by: str) -> dict[str, dict[str, Any]]:
    both = ends(case, version)
    wire = spoken(both)
    return findings(talk_of(wire, closed_by, today()).packets, [str(both.keylog)] if with_keys else [])


@BOTH
@KEYS
@pytest.mark.parametrize("case", ["ok", "mutual"])
def test_what_works_is_silent(case: str, version: ssl.TLSVersion, with_keys: bool) -> None:
    for closed_by in ("client", "server"):
        assert found_in(case, version, with_keys, closed_by) == {}


@BOTH
@KEYS
@pytest.mark.parametrize("case", ["no certificate", "a certificate of another issuer"])
def test_mutual_tls_that_fails(case: str, version: ssl.TLSVersion, with_keys: bool) -> None:
    found = found_in(case, version, with_keys, "server")
    assert set(found) == {"TLS101", "TLS107"}
    own, seen = found["TLS107"], with_keys or version == V12
    assert own["confidence"] == ("high" if seen else "medium")
    assert ("sends none" in own["sentence"]) == (case == "no certificate")
    assert "10.0.0.1" in own["sentence"]
    assert "10.0.0.2:9092 (broker1.example, Kafka)" in own["sentence"]
    assert ("issued by CN=Other CA,O=Example" in own["sentence"]) == (seen and case != "no certificate")
    assert own["incident_id"] == found["TLS101"]["incident_id"] == own["finding_id"]


@BOTH
@KEYS
def test_a_certificate_that_is_expired_at_the_time_of_the_capture(version: ssl.TLSVersion, with_keys: bool) -> None:
    """The packets are years older than the certificate; so is the time that counts."""
    both = ends("expired", version)
    talk = Talk(ts_ns=1_600_000_000_000_000_000)
    found = findings(talk_of(spoken(both), "client", talk).packets, [str(both.keylog)] if with_keys else [])
    assert set(found) == {"TLS101", "TLS102"}
    seen = with_keys or version == V12
    assert ("is valid only from" in found["TLS102"]["sentence"]) == seen
    assert found["TLS102"]["confidence"] == ("high" if seen else "medium")


@BOTH
def test_the_client_names_what_it_does_not_like(version: ssl.TLSVersion) -> None:
    found = found_in("an issuer that is not trusted", version, False, "client")
    assert set(found) == {"TLS101"}
    assert "10.0.0.1 refuses the TLS handshake with 10.0.0.2:9092" in found["TLS101"]["sentence"]
    assert "unknown_ca: the issuer of the server's certificate is not trusted" in found["TLS101"]["sentence"]
    assert found["TLS101"]["severity"] == "critical"


@pytest.mark.parametrize(("name", "expected"), [(NAME, set()), ("other.example", {"TLS102"})])
def test_a_name_that_the_client_does_not_check(name: str, expected: set[str]) -> None:
    both = Ends(V12, authority(), authority().issue("x", [NAME]), checks=False)
    found = findings(talk_of(spoken(both, name), "client", today()).packets)
    assert set(found) == expected
    assert {row["severity"] for row in found.values()} <= {"info"}


@BOTH
def test_web_traffic_is_nothing_to_these_rules(version: ssl.TLSVersion) -> None:
    both = ends("an issuer that is not trusted", version)
    packets = talk_of(spoken(both), "client", today(("10.0.0.2", 443))).packets
    assert findings(packets) == {}
    assert set(findings(packets, decode_as={443: "mqtt"})) == {"TLS101"}


def test_clear_text_and_tls_at_the_wrong_ports() -> None:
    hello = spoken(ends("ok", V13))[:1]
    connect = bytes.fromhex("101000044d5154540402003c000461626364")
    at_clear = talk_of(hello, "server", Talk(server=("10.0.0.2", 1883))).packets
    found = findings(at_clear)
    assert set(found) == {"TLS106"}
    assert "speaks TLS to 10.0.0.2:1883" in found["TLS106"]["sentence"]
    alert = [
        hello[0]._replace(data=connect),
        hello[0]._replace(from_client=False, data=bytes.fromhex("15030300020246")),
    ]
    at_tls = talk_of(alert, "server", Talk(server=("10.0.0.2", 8883))).packets
    found = findings(at_tls)
    assert set(found) == {"TLS106"}
    assert "speaks in clear text to 10.0.0.2:8883 (MQTT), which expects TLS" in found["TLS106"]["sentence"]


@pytest.mark.parametrize(
    ("names", "wanted", "expected"),
    [
        (["a.example"], "A.example.", True),
        (["*.example"], "a.example", True),
        (["*.example"], "a.b.example", False),
        (["*.example"], "example", False),
        (["a*.example"], "ab.example", False),
        (["*"], "example", False),
        ([], "a.example", False),
    ],
)
def test_names(names: list[str], wanted: str, expected: bool) -> None:
    assert is_for(names, wanted) is expected


@pytest.mark.parametrize(
    ("libraries", "said"),
    [
        (["apache-kafka-java"], "apache-kafka-java: java -javaagent:"),
        (["kgo", "sarama"], "kgo, sarama: tls.Config{KeyLogWriter: file}"),
        (["confluent-kafka-python"], "/tmp/keys.log (on Linux; SSLKEYLOGFILE is ignored, not tried)"),
        (["PyMongo|c", "nodejs"], "nodejs: node --tls-keylog"),
        (["something"], ""),
        ([], ""),
    ],
)
def test_ways_to_log_keys(libraries: list[str], said: str) -> None:
    told = ways_of(libraries)
    assert said in told
    assert bool(told) == bool(said)


def test_the_way_for_a_client_that_says_what_it_is_elsewhere() -> None:
    """One address: a connection that can be read and one that cannot."""
    sample = packets_of(SAMPLES / "kafka_fenced_commit.pcapng")
    address = "10.77.0.11"
    hidden = talk_of(spoken(ends("ok", V13)), "client", Talk(client=(address, 40_001), ts_ns=sample[-1].ts_ns))
    asked = ReadOptions()
    with analysis_of(decode([*sample, *hidden.packets], TABLES_OF_CAP106), TABLES_OF_CAP106, asked,
                     PROTOCOLS.values()) as analysis:  # fmt: skip
        found = analysis.findings()
        names = set(analysis.table("kafka_api_versions").query("client_address == @address").software_name.dropna())
    (step,) = found[found.code == "CAP106"].next_step
    assert names
    assert all(name in step for name in names)


SMALL = sorted(path.name for path in SAMPLES.glob("*.pcapng") if path.stat().st_size < 700_000)


@pytest.mark.parametrize("name", share(SMALL, ["mongo_healthy.pcapng"]))
@proves_more
def test_samples_inside_tls_are_silent_about_it(name: str) -> None:
    """Real traffic of many clients, whatever else is wrong with it: TLS is not."""
    sides = Sides(V13)
    encrypted, _ = twin(packets_of(SAMPLES / name), sides)
    assert findings(encrypted) == {}


@pytest.mark.parametrize(
    ("states", "advised", "not_advised"),
    [
        (["no key"], "let a client or the server log its keys", "begin the capture"),
        (["decrypted", "no key"], "the keys given open other connections", "let a client"),
        (["wrong key"], "the given one has other keys", "let a client"),
        (["start not captured"], "begin the capture before the clients connect", "--keylog"),
        (["start lost"], "without packets lost", "--keylog"),
        (["cut by snap length"], "capture whole packets (tcpdump -s 0)", "--keylog"),
        (["no key"], "a broker's request log (wirewitness guide request-log)", "began before"),
        (["no key", "decrypted"], "1 of them began before the first connection to its server", "let a client or"),
        (["cipher suite not supported"], "use another cipher suite", "--keylog"),
    ],
)
def test_advice_fits_what_is_lacking(states: list[str], advised: str, not_advised: str) -> None:
    rows = [
        tcp_flow(str(number), encrypted=True, tls_decryption=state, port_protocol="kafka", ts_first=at(number))
        for number, state in enumerate(states)
    ]
    remarks = [remark(row["flow_id"], number, "tcp", "encrypted") for number, row in enumerate(rows)]
    scenario = Scenario("advice", "CAP106", {"flows": rows, "expert_infos": remarks}, frozenset())
    (found,) = [one for one in run(connected(scenario), looked_at(scenario)) if one.code == "CAP106"]
    assert advised in found.next_step
    assert not_advised not in found.next_step
    closed = [number for number, state in enumerate(states) if state != "decrypted"]
    assert found.numbers["encrypted_flows"] == len(closed)
    assert [one.packet for one in found.evidence] == [remarks[number]["packet"] for number in closed]
