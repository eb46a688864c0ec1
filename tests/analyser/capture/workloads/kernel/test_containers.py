"""Containers and pods out of what runtimes write into /proc/PID/cgroup; names that a kubelet leaves in /var/log."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirewitness.analyser.capture.workloads.kernel.containers import Group, KubeletNames, Names, group

ID = "bdc11dc1d24720bfac0c05040d3d54f0525c64e0275f4e7d9028711504b4fac7"
INNER = "9bca8d63d5fa610783847915bcff0ecac1273e5b4bed3f6fa1b07350e0135961"
POD = "ade50c4e-141d-4b61-a154-c835f04f0d73"
UNDER = POD.replace("-", "_")
STATIC = "0123456789abcdef0123456789abcdef"

# Names from documentation and tests of Docker, containerd, cri-o, podman, kubelet and systemd, ids made alike.
IN_CONTAINERS = {
    "docker v1": (f"12:pids:/docker/{ID}\n1:name=systemd:/docker/{ID}\n0::/system.slice/containerd.service\n", None),
    "docker v2": (f"0::/system.slice/docker-{ID}.scope\n", None),
    "docker in docker": (f"0::/docker/{INNER}/docker/{ID}/init.scope\n", None),
    "podman": (f"0::/machine.slice/libpod-{ID}.scope/container\n", None),
    "podman of a user": (f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope\n", None),
    "podman cgroupfs": (f"9:memory:/libpod_parent/libpod-{ID}\n", None),
    "systemd inside": (f"0::/user.slice/libpod-{ID}.scope/container/system.slice/sshd.service\n", None),
    "nerdctl": (f"0::/system.slice/nerdctl-{ID}.scope\n", None),
    "kubelet systemd": (
        f"10:pids:/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDER}.slice/cri-containerd-{ID}.scope\n",
        POD,
    ),
    "kubelet guaranteed": (f"0::/kubepods.slice/kubepods-pod{UNDER}.slice/crio-{ID}.scope\n", POD),
    "kubelet docker": (
        f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UNDER}.slice/docker-{ID}.scope\n",
        POD,
    ),
    "kubelet cgroupfs": (f"12:hugetlb:/kubepods/burstable/pod{POD}/{ID}\n", POD),
    "kubelet cgroupfs cri-o": (f"9:devices:/kubepods/besteffort/pod{POD}/crio-{ID}\n", POD),
    "containerd with another driver": (
        f"12:cpu,cpuacct:/system.slice/containerd.service/kubepods-besteffort-pod{UNDER}.slice:cri-containerd:{ID}\n",
        POD,
    ),
    "static pod": (f"0::/kubepods/burstable/pod{STATIC}/{ID}\n", STATIC),
    "kind": (f"0::/docker/{INNER}/kubelet/kubepods/pod{POD}/{ID}\n", POD),
    "namespace of groups": (f"0::/../../pod{POD}/{ID}\n", POD),
}
OUTSIDE = [
    "0::/init.scope\n",
    "0::/system.slice/docker.service\n",
    "0::/user.slice/user-1000.slice/session-3.scope\n",
    f"0::/machine.slice/libpod-conmon-{ID}.scope\n",
    f"0::/kubepods.slice/kubepods-pod{UNDER}.slice/crio-conmon-{ID}.scope\n",
    f"0::/system.slice/docker-{ID[:12]}.scope\n",
    f"0::/system.slice/docker-{ID.upper()}.scope\n",
    f"0::/backup-{ID}\n",
    "0::/\n",
    ":::\n\n/",
    "",
]


@pytest.mark.parametrize(("text", "pod"), IN_CONTAINERS.values(), ids=IN_CONTAINERS)
def test_a_container_is_known_by_its_group(text: str, pod: str | None) -> None:
    assert group(text) == Group(ID, pod)


@pytest.mark.parametrize("text", OUTSIDE)
def test_what_is_no_container_has_none(text: str) -> None:
    assert group(text) == Group()


def kubelet(folder: Path) -> KubeletNames:
    return KubeletNames(str(folder / "pods"), str(folder / "containers"))


def test_a_kubelet_has_written_names_down(tmp_path: Path) -> None:
    (tmp_path / "pods" / f"shop_payments-7d4f_{POD}").mkdir(parents=True)
    (tmp_path / "pods" / "stray").mkdir()
    (tmp_path / "containers").mkdir()
    (tmp_path / "containers" / f"payments-7d4f_shop_side-car-{ID}.log").touch()
    names = kubelet(tmp_path)
    assert names.names(Group(ID, POD)) == Names("side-car", "payments-7d4f", "shop")
    assert names.names(Group(INNER, POD)) == Names(None, "payments-7d4f", "shop")
    assert names.names(Group(ID, None)) == Names()  # of Docker or podman


def test_names_that_contradict_each_other_are_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "pods" / f"shop_payments-7d4f_{POD}").mkdir(parents=True)
    (tmp_path / "containers").mkdir()
    (tmp_path / "containers" / f"other_shop_main-{ID}.log").touch()
    assert kubelet(tmp_path).names(Group(ID, POD)) == Names(None, "payments-7d4f", "shop")


def test_without_a_kubelet_there_are_no_names(tmp_path: Path) -> None:
    assert kubelet(tmp_path).names(Group(ID, POD)) == Names()
