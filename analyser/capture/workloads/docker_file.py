"""Containers as Docker and podman tell of them. In: what `docker inspect` or `docker network inspect` writes, several
of either together. Out: entries.

Source: the Docker Engine API, ContainerInspect (Name, State, Config.Labels, NetworkSettings.Networks) and
NetworkInspect (Name, Containers, IPAM.Config). A container has an address in each of its networks, from its start on.
A network says who is in it now, with the length of the prefix behind each address; its gateway is the machine itself,
from where connections to published ports come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wirewitness.analyser.base.times import ns_of
from wirewitness.analyser.capture.workloads.address_names import FIRST_NS, LAST_NS, Entry
from wirewitness.analyser.capture.workloads.hosts_file import known_address
from wirewitness.analyser.capture.workloads.workload import Identity, identity

_SERVICE = "com.docker.compose.service"
_ADDRESSES = ("IPAddress", "GlobalIPv6Address")
_ADDRESSES_THERE = ("IPv4Address", "IPv6Address")
# A container that never ended says so by this year.
_NEVER = "0001-"


def is_docker(document: object) -> bool:
    """Whether JSON is of containers or networks, or an empty list of them."""
    listed = document if isinstance(document, list) else [document]
    return all(isinstance(one, dict) and ("NetworkSettings" in one or "IPAM" in one) for one in listed)


def docker_entries(document: Any) -> tuple[list[Entry], int]:
    """Entries, and how many running containers have no address: those that use their host's or another's network."""
    found: dict[Entry, None] = {}
    without = 0
    for one in document if isinstance(document, list) else [document]:
        if "NetworkSettings" in one:
            entries = list(_container(one))
            without += not entries and _dict(one, "State").get("Running") is True
        else:
            entries = list(_network(one))
        found |= dict.fromkeys(entries)
    return list(found), without


def _container(told: Mapping[str, Any]) -> Iterator[Entry]:
    state, settings = _dict(told, "State"), _dict(told, "NetworkSettings")
    service = _text(_dict(_dict(told, "Config"), "Labels"), _SERVICE)
    one = _named(told, f"service {service}" if service else None)
    begins, ends = _time(state, "StartedAt", FIRST_NS), _time(state, "FinishedAt", LAST_NS)
    if state.get("Running") is True or ends <= begins:
        ends = LAST_NS
    networks = [settings, *(each for each in _dict(settings, "Networks").values() if isinstance(each, dict))]
    for network in networks:
        for key in _ADDRESSES:
            address = known_address(_text(network, key) or "")
            if address and one.known:
                yield Entry(address, one, begins, ends)


def _network(told: Mapping[str, Any]) -> Iterator[Entry]:
    name = _text(told, "Name")
    for held in _dict(told, "Containers").values():
        one = _named(held) if isinstance(held, dict) else Identity()
        for key in _ADDRESSES_THERE if one.known else ():
            address = known_address((_text(held, key) or "").partition("/")[0])
            if address:
                yield Entry(address, one)
    ranges = _dict(told, "IPAM").get("Config")
    for one_range in ranges if isinstance(ranges, list) else ():
        gateway = known_address(_text(one_range, "Gateway") or "") if isinstance(one_range, dict) else None
        if gateway and name:
            yield Entry(gateway, identity(host=f"gateway of {name}", source="docker"))


def _named(told: Mapping[str, Any], workload: str | None = None) -> Identity:
    name = (_text(told, "Name") or "").removeprefix("/")
    return identity(container=name, workload=workload, source="docker")


def _time(state: Mapping[str, Any], name: str, unknown: int) -> int:
    text = _text(state, name)
    if text is None or text.startswith(_NEVER):
        return unknown
    try:
        return max(FIRST_NS, min(ns_of(text), LAST_NS))
    except (ValueError, OverflowError):
        return unknown


def _dict(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = told.get(name)
    return found if isinstance(found, dict) else {}


def _text(told: Mapping[str, Any], name: str) -> str | None:
    found = told.get(name)
    return found if isinstance(found, str) and found else None
