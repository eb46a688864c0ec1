"""The judge, the variants and the firewall of the incidents; with real servers (make lab-test) a few incidents."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES, require_program
from tests.lab import firewall
from tests.lab.incidents import second_network, vary
from tests.lab.incidents.catalogue import all_faults
from tests.lab.incidents.rules_table import rules
from tests.lab.incidents.verdict import Said, says, verdict

CULPRIT = {"group": "orders-bill", "client_id": "bill-a", "address": "10.77.0.11", "topic": "eu.orders", "partition": 2}


def truth_of(**changes: Any) -> dict[str, Any]:
    return {
        "fault": "something",
        "healthy": False,
        "culprit": CULPRIT,
        "expected": ["KAF119"],
        "allowed": ["KAF126"],
        "affected": {"clients": [{"client_id": "bill-b", "address": "10.77.0.12"}], "groups": ["orders-bill"]},
        "member_ids": {"orders-bill": {"bill-a@10.77.0.11": ["bill-a-77"]}, "stock-sync": {}},
        "facts": {"broker": {"clients": ["bill-a@10.77.0.11", "bill-b@10.77.0.12", "sync@10.77.0.19"]}},
        **changes,
    }


def said(code: str, words: str, severity: str = "warning") -> Said:
    return Said(code, severity, words, words)


NAMED = "group orders-bill: client bill-a cannot get past eu.orders-2"


@pytest.mark.parametrize(
    ("findings", "result", "wrong"),
    [
        ([said("KAF119", NAMED)], "named first", 0),
        ([said("KAF119", "group orders-bill: member bill-a-77, eu.orders-2")], "named first", 0),
        ([said("KAF126", "group orders-bill waits for bill-b"), said("KAF119", NAMED)], "named", 0),
        ([said("CAP101", "gaps"), said("KAF119", NAMED)], "named first", 0),
        ([said("KAF119", "group orders-bill: eu.orders-2")], "partly", 0),
        ([said("KAF119", "group orders-bill: client bill-a, eu.orders-1")], "partly", 0),
        ([said("KAF119", "group orders-bill-2: client bill-abc, eu.orders-2.")], "missed", 0),
        ([said("KAF103", NAMED)], "misled", 1),
        ([said("KAF126", "group stock-sync waits")], "misled", 1),
        ([said("KAF126", "client sync waits")], "misled", 1),
        ([said("KAF126", "10.77.0.19 waits")], "misled", 1),
        ([said("KAF103", NAMED, "info")], "missed", 0),
        ([], "missed", 0),
    ],
)
def test_a_report_is_judged_by_who_it_names(findings: list[Said], result: str, wrong: int) -> None:
    found = verdict("x", truth_of(), findings)
    assert (found.result, len(found.wrong)) == (result, wrong)


def test_a_healthy_run_must_be_silent_above_info() -> None:
    truth = truth_of(healthy=True, culprit={}, expected=[])
    assert verdict("x", truth, [said("KAF110", "rebalances", "info"), said("CAP101", "gaps")]).result == "silent"
    assert verdict("x", truth, [said("KAF110", "rebalances")]).result == "false alarm"


def test_of_two_who_are_to_blame_both_must_be_named() -> None:
    both = [{"client_id": "bill-a", "address": "10.77.0.11"}, {"client_id": "bill-b", "address": "10.77.0.12"}]
    truth = truth_of(culprit={"group": "orders-bill", "clients": both})
    assert verdict("x", truth, [said("KAF119", "orders-bill: bill-a")]).result == "partly"
    assert verdict("x", truth, [said("KAF119", "orders-bill: bill-a, 10.77.0.12")]).result == "named first"
    of_any = truth_of(culprit={"group": "orders-bill", "any": both, "client_id": "bill-a"})
    assert verdict("x", of_any, [said("KAF119", "orders-bill: bill-b")]).result == "named first"


def test_a_name_is_not_found_in_a_longer_one() -> None:
    assert says("client bill-a.", "bill-a")
    assert says('"10.77.0.1:9092"', "10.77.0.1")
    assert not says("client bill-ab", "bill-a")
    assert not says("10.77.0.12", "10.77.0.1")
    assert not says("eu.orders.dlq", "eu.orders")


def test_rules_have_recall_and_precision() -> None:
    runs = [verdict("x", truth_of(), found) for found in ([said("KAF119", NAMED)], [said("KAF103", "orders-bill")])]
    table = {row["code"]: row for row in rules(runs)}
    assert (table["KAF119"]["recall"], table["KAF119"]["precision"]) == (0.5, 1.0)
    assert (table["KAF103"]["wrong"], table["KAF103"]["precision"]) == (1, 0.0)


def test_every_incident_says_what_happens() -> None:
    assert all(fault.about for fault in all_faults().values())


def run_program(code: str, packet: bytes) -> int | None:
    """Run classic BPF as the kernel does; None where it asks for chance."""
    lines = [tuple(map(int, line.split())) for line in code.split(",")[1:-1]]
    accumulator, place = 0, 0
    while True:
        operation, yes, no, value = lines[place]
        place += 1
        if operation == firewall.RETURN:
            return value
        if operation == firewall.IF_EQUAL:
            place += yes if accumulator == value else no
        elif operation in (firewall.LOAD_HALF, firewall.LOAD_WORD):
            if value == firewall.RANDOM:
                return None
            kind = ">H" if operation == firewall.LOAD_HALF else ">I"
            (accumulator,) = struct.unpack_from(kind, packet, value)


def packet_from(address: str, port: int, kind: int = firewall.IPV4) -> bytes:
    addresses = bytes(map(int, address.split("."))) + bytes((10, 77, 0, 2))
    return bytes(12) + struct.pack(">H", kind) + bytes(12) + addresses + struct.pack(">HH", port, 9092)


def test_the_firewall_drops_the_ports_of_one_client_alone() -> None:
    code = firewall.bytecode(firewall.steps("10.77.0.11", "ingress", 0, [40001, 40002]))
    assert run_program(code, packet_from("10.77.0.11", 40002)) == firewall.DROP
    assert run_program(code, packet_from("10.77.0.11", 40003)) == firewall.PASS
    assert run_program(code, packet_from("10.77.0.12", 40002)) == firewall.PASS
    assert run_program(code, packet_from("10.77.0.11", 40002, kind=0x806)) == firewall.PASS
    by_chance = firewall.bytecode(firewall.steps("10.77.0.11", "ingress", 0.01, []))
    assert run_program(by_chance, packet_from("10.77.0.11", 1)) is None
    assert run_program(by_chance, packet_from("10.77.0.12", 1)) == firewall.PASS


def test_a_second_network_has_names_of_equal_length() -> None:
    moved = second_network.moved_packet(packet_from("10.77.0.11", 1) + b"broker 10.77.0.2:9092")
    assert moved[26:34] == bytes((10, 78, 0, 11, 10, 78, 0, 2))
    assert moved.endswith(b"broker 10.78.0.2:9092")


def test_variants_are_made_of_packed_samples(tmp_path: Path) -> None:
    require_program("editcap")
    require_program("tshark")
    source = SAMPLES / "incidents" / "out_of_sequence-1"
    with vary.plain_capture(source) as capture:
        whole = vary.packets(capture)
    vary.make(source, "start-cut", tmp_path, seed=1)
    made = tmp_path / "out_of_sequence-1.start-cut"
    assert vary.packets(made / "capture.pcapng") == whole - whole // 3 + 1
    assert json.loads((made / "truth.json").read_text())["variant"] == "start-cut"
    with pytest.raises(FileNotFoundError, match="no capture"), vary.plain_capture(tmp_path):
        pass


@pytest.mark.lab
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["member_killed:librdkafka:classic", "rolling_restart:franz", "packet_loss:franz"])
def test_an_incident_leaves_its_truth(name: str, tmp_path: Path) -> None:
    from tests.lab.incidents import judge, run
    from tests.lab.processes import run as command
    from tests.lab.shared_runs import require_lab

    require_lab()
    assert run.main([name, "--output", str(tmp_path), "--seed", "5"]) == 0
    (folder,) = judge.incidents([tmp_path])
    truth = json.loads((folder / "truth.json").read_text())
    groups = set(truth["member_ids"])
    assert set(truth["affected"]["groups"]) <= groups
    assert len(groups) >= 3  # those of the healthy traffic
    if name.startswith("member_killed"):
        gone = truth["culprit"]
        assert not [one for one in truth["facts"]["broker"]["leaves"] if one["client"].startswith(gone["client_id"])]
    (found,) = judge.judged(folder)
    assert found.result != "fault"
    assert not [line for line in command(["ip", "netns"]).splitlines() if line.startswith(f"wwlab{os.getpid()}x")]
