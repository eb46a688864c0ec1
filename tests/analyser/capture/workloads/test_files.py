"""Files that name addresses: every form by its content, times, and what nobody can be named by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirewitness.analyser.base.times import ns_of
from wirewitness.analyser.capture.workloads import files
from wirewitness.analyser.capture.workloads.address_names import AddressNames, Found
from wirewitness.analyser.capture.workloads.files import NamesFileError, read_file, read_names
from wirewitness.analyser.capture.workloads.workload import Identity

NOON, LATER = ns_of("2026-11-20T12:00:00"), ns_of("2026-11-20T13:00:00")


@pytest.fixture
def names(tmp_path: Path) -> Any:
    def of(*texts: str) -> AddressNames:
        paths = []
        for number, text in enumerate(texts):
            path = tmp_path / str(number)
            path.write_text(text)
            paths.append(str(path))
        return read_names(paths)

    return of


def pod(name: str, address: str, **more: Any) -> dict[str, Any]:
    spec = {"nodeName": "node-1", "containers": [{"name": "app"}], **more.pop("spec", {})}
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], **more.pop("status", {})}
    meta = {"name": name, "namespace": "shop", "creationTimestamp": "2026-11-20T08:00:00Z", **more.pop("metadata", {})}
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": status, **more}


def pods(*items: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def test_hosts_file_names_by_the_first_name(names: Any) -> None:
    found = names("# comment\n10.0.0.1\tdb-1.shop db-1 # old\n2001:0DB8::1 db-2\n127.0.0.1 localhost\nff02::1 all\n")
    assert found.at("10.0.0.1", NOON) == (Identity(host="db-1.shop", source="hosts"), Found.NAMED)
    assert found.at("2001:db8::1", NOON)[0] == Identity(host="db-2", source="hosts")
    assert found.at("127.0.0.1", NOON) == (None, Found.UNKNOWN)
    assert found.at("10.0.0.2", NOON) == (None, Found.UNKNOWN)


def test_address_with_two_names_has_none(names: Any) -> None:
    assert names("10.0.0.1 one\n10.0.0.1 two\n").at("10.0.0.1", NOON) == (None, Found.SEVERAL)
    assert names("10.0.0.1 one\n", "10.0.0.1 two\n").at("10.0.0.1", NOON) == (None, Found.SEVERAL)
    assert names("10.0.0.1 one\n", "10.0.0.1 one alias\n").at("10.0.0.1", NOON)[1] is Found.NAMED


TIMED = {
    "csv": "address,name,from,until,pid\n10.0.0.1,old,,2026-11-20T12:30:00Z,\n10.0.0.1,new,2026-11-20T12:30:00Z,,7\n",
    "toml": """[[host]]
address = "10.0.0.1"
name = "old"
until = 2026-11-20T12:30:00Z
[[host]]
address = "10.0.0.1"
name = "new"
pid = 7
from = 2026-11-20T13:30:00+01:00
""",
}


@pytest.mark.parametrize("text", TIMED.values(), ids=TIMED)
def test_address_that_changes_hands(names: Any, text: str) -> None:
    found = names(text)
    change = ns_of("2026-11-20T12:30:00")
    old, new = Identity(host="old", source="hosts"), Identity(7, host="new", source="hosts")
    assert [found.at("10.0.0.1", at)[0] for at in (0, change - 1, change, LATER)] == [old, old, new, new]


def test_pod_by_its_time(names: Any) -> None:
    ended = {"state": {"terminated": {"finishedAt": "2026-11-20T12:30:00Z"}}}
    replica_set = {"kind": "ReplicaSet", "name": "pay-7d4f9", "controller": True}
    first = pod(
        "pay-7d4f9-a",
        "10.0.0.1",
        status={"phase": "Failed", "startTime": "2026-11-20T08:00:00Z", "containerStatuses": [ended]},
        metadata={"labels": {"pod-template-hash": "7d4f9"}, "ownerReferences": [replica_set]},
    )
    second = pod(
        "ledger-0",
        "10.0.0.1",
        status={"startTime": "2026-11-20T12:40:00Z"},
        metadata={"ownerReferences": [{"kind": "StatefulSet", "name": "ledger"}]},
    )
    found = names(pods(first, second))
    one, verdict = found.at("10.0.0.1", NOON)
    assert verdict is Found.NAMED
    assert one == Identity(None, None, None, "app", "pay-7d4f9-a", "shop", "deployment pay", "node-1", "pods")
    assert found.at("10.0.0.1", ns_of("2026-11-20T12:35:00")) == (None, Found.OTHER_TIME)
    later = found.at("10.0.0.1", LATER)[0]
    assert (later.pod, later.workload) == ("ledger-0", "statefulset ledger")
    assert found.at("10.0.0.1", 0) == (None, Found.OTHER_TIME)


def test_pods_on_the_nodes_network_are_the_node(names: Any) -> None:
    shared = {"hostNetwork": True}
    status = {"hostIP": "10.0.0.9"}
    items = [pod(name, "10.0.0.9", spec=shared, status=status) for name in ("agent", "proxy")]
    found = names(pods(*items, pod("app", "10.0.0.1", status=status)))
    assert found.at("10.0.0.9", NOON) == (Identity(host="node-1", source="pods"), Found.NAMED)
    assert found.at("10.0.0.1", NOON)[0].pod == "app"


def test_two_pods_with_one_address_at_once_are_not_told_apart(names: Any) -> None:
    on_one = names(pods(pod("a", "10.0.0.1"), pod("b", "10.0.0.1")))
    assert on_one.at("10.0.0.1", NOON) == (Identity(host="node-1", source="pods"), Found.SEVERAL)
    on_two = names(pods(pod("a", "10.0.0.1"), pod("b", "10.0.0.1", spec={"nodeName": "node-2"})))
    assert on_two.at("10.0.0.1", NOON) == (None, Found.SEVERAL)


def test_one_pod_alone_and_nodes(names: Any) -> None:
    addresses = [{"type": "InternalIP", "address": "10.0.0.7"}, {"type": "Hostname", "address": "node-7"}]
    node = {"kind": "Node", "metadata": {"name": "node-7"}, "status": {"addresses": addresses}}
    assert names(json.dumps(pod("a", "10.0.0.1"))).at("10.0.0.1", NOON)[0].pod == "a"
    assert names(pods(node)).at("10.0.0.7", NOON)[0] == Identity(host="node-7", source="pods")


def test_pod_of_several_containers_names_none_of_them(names: Any) -> None:
    two = {"containers": [{"name": "app"}, {"name": "sidecar"}]}
    assert names(pods(pod("a", "10.0.0.1", spec=two))).at("10.0.0.1", NOON)[0].container is None


WRONG = {
    "prose": "this is not a hosts file\n",
    "json of something else": '{"kind": "ConfigMap"}',
    "services": '{"kind": "List", "items": [{"kind": "Service"}]}',
    "broken json": '{"kind": "List", "items": [',
    "deep json": "[" * 10,
    "deep pods": '{"items":' + "[" * 100_000,
    "csv with an unknown column": "address,nickname\n10.0.0.1,x\n",
    "toml of something else": "[tool]\nname = 1\n",
    "a packet capture": "\xd4\xc3\xb2\xa1\0\0",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_other_files_are_refused_in_one_line(names: Any, text: str) -> None:
    with pytest.raises(NamesFileError) as caught:
        names(text)
    assert "\n" not in str(caught.value)
    assert "wanted" in str(caught.value)


def test_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    monkeypatch.setattr(files, "MAX_ENTRIES", 2)
    path = tmp_path / "hosts"
    path.write_text("#" * 1001)
    with pytest.raises(NamesFileError, match="larger"):
        read_file(str(path))
    path.write_text("10.0.0.1 a\n10.0.0.2 b\n10.0.0.3 c\n")
    with pytest.raises(NamesFileError, match="more than 2"):
        read_file(str(path))
    with pytest.raises(NamesFileError, match="cannot be read"):
        read_file(str(tmp_path / "none"))


def test_wrong_parts_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("10.0.0.1 a\nnot-an-address b\n10.0.0.2\n")
    assert read_file(str(path)).passed_over == 2
    path.write_text("address,name,from\n10.0.0.1,a,yesterday\n10.0.0.2,b,\n")
    assert (read_file(str(path)).passed_over, len(read_file(str(path)).entries)) == (1, 1)
    strange = {"kind": "Pod", "metadata": [], "spec": 3, "status": {"podIP": 7, "podIPs": "10.0.0.1"}}
    path.write_text(pods(pod("a", "10.0.0.1"), pod("b", "nowhere"), strange))
    assert (read_file(str(path)).passed_over, len(read_file(str(path)).entries)) == (1, 1)


def container(name: str, address: str, **more: Any) -> dict[str, Any]:
    """A container as `docker inspect` has it."""
    state = {"Running": True, "StartedAt": "2026-11-20T08:00:00.123456789Z", "FinishedAt": "0001-01-01T00:00:00Z"}
    networks = {"shop_default": {"IPAddress": address, "GlobalIPv6Address": ""}}
    return {"Name": f"/{name}", "State": state | more.pop("State", {}), "Config": {"Labels": more.pop("labels", None)},
            "NetworkSettings": {"IPAddress": "", "Networks": networks if address else {}}, **more}  # fmt: skip


def network(**held: str) -> dict[str, Any]:
    """A network as `docker network inspect` has it."""
    containers = {
        name: {"Name": name, "IPv4Address": f"{address}/16", "IPv6Address": ""} for name, address in held.items()
    }
    return {"Name": "shop_default", "IPAM": {"Config": [{"Subnet": "172.18.0.0/16", "Gateway": "172.18.0.1"}]},
            "Containers": containers}  # fmt: skip


def test_containers_by_docker_inspect(names: Any) -> None:
    broker = container("shop-kafka-1", "172.18.0.2", labels={"com.docker.compose.service": "kafka"})
    ended = container("old", "172.18.0.9", State={"Running": False, "FinishedAt": "2026-11-20T11:00:00Z"})
    found = names(json.dumps([broker, ended]))
    known = Identity(container="shop-kafka-1", workload="service kafka", source="docker")
    assert found.at("172.18.0.2", NOON) == (known, Found.NAMED)
    assert found.at("172.18.0.2", ns_of("2026-11-20T07:00:00"))[1] is Found.OTHER_TIME
    assert found.at("172.18.0.9", ns_of("2026-11-20T10:00:00"))[0] == Identity(container="old", source="docker")
    assert found.at("172.18.0.9", NOON)[1] is Found.OTHER_TIME
    assert names(json.dumps(broker)).at("172.18.0.2", NOON)[0] == known


def test_containers_by_docker_network_inspect(names: Any) -> None:
    found = names(json.dumps([network(kafka="172.18.0.2", mosquitto="172.18.0.3")]))
    assert found.at("172.18.0.3", NOON) == (Identity(container="mosquitto", source="docker"), Found.NAMED)
    assert found.at("172.18.0.1", NOON)[0] == Identity(host="gateway of shop_default", source="docker")


def test_both_files_together_name_what_one_of_them_knows_more_of(names: Any) -> None:
    broker = container("kafka", "172.18.0.2", labels={"com.docker.compose.service": "kafka"})
    found = names(json.dumps([broker]), json.dumps([network(kafka="172.18.0.2", other="172.18.0.5")]))
    one, verdict = found.at("172.18.0.2", NOON)
    assert (one and one.workload, verdict) == ("service kafka", Found.NAMED)
    someone_else = names(json.dumps([broker]), json.dumps([network(other="172.18.0.2")]))
    assert someone_else.at("172.18.0.2", NOON) == (None, Found.SEVERAL)


def test_running_containers_without_an_address_are_counted(names: Any) -> None:
    (file,) = names(json.dumps([container("on-the-host", ""), container("kafka", "172.18.0.2")])).files
    assert (file.passed_over, len(file.entries)) == (1, 1)


@pytest.mark.parametrize("text", ['[{"Id": "1"}]', '[{"Name": "x"}, 3]', "[3]"])
def test_lists_of_something_else_are_refused(names: Any, text: str) -> None:
    with pytest.raises(NamesFileError, match="docker network inspect"):
        names(text)
