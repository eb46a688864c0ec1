"""One end of a connection by name. In: what somebody knows of it. Out: a value, and its words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from wirewitness.analyser.base.words import printable

# Where it was learned: blocks and options of the capture file, comments of ptcpdump in it, Apple's link layer, a file
# of names, a list of pods or of containers that somebody gave, this machine's kernel while it captured.
Source = Literal["capture", "comment", "pktap", "hosts", "pods", "docker", "kernel"]

MAX_NAME = 253  # characters of a name of the DNS, which names of pods and hosts are
MAX_WORDS = 64  # characters of one name in a sentence
MAX_PID = (1 << 32) - 1


class Identity(NamedTuple):
    """A process, and where it runs. What nobody says is None; 0 is no process id.

    command: the program's name without its arguments, which may hold credentials. user: a name, or the number of one
    without. container: its name, or its id where no name is known. workload: what made the pod, such as
    `deployment payments`. host: the machine or Kubernetes node, or the name of an address.
    """

    pid: int | None = None
    command: str | None = None
    user: str | None = None
    container: str | None = None
    pod: str | None = None
    namespace: str | None = None
    workload: str | None = None
    host: str | None = None
    source: Source | None = None

    @property
    def known(self) -> bool:
        """Does it say anything?"""
        return any(value is not None for value in self[:-1])


def identity(
    *,
    pid: int | None = None,
    command: str | None = None,
    user: str | None = None,
    container: str | None = None,
    pod: str | None = None,
    namespace: str | None = None,
    workload: str | None = None,
    host: str | None = None,
    source: Source | None = None,
) -> Identity:
    """An identity out of what a file or the kernel says: names are bounded, empty ones and impossible ids are None."""
    return Identity(
        pid if pid is not None and 0 < pid <= MAX_PID else None,
        _name(command),
        _name(user),
        _name(container),
        _name(pod),
        _name(namespace),
        _name(workload),
        _name(host),
        source,
    )


def agreed(identities: Iterable[Identity]) -> Identity:
    """What all say, one at least; what they differ in is not known."""
    fields: dict[str, Any] = {
        name: values[0] if len(set(values)) == 1 else None
        for name, values in zip(Identity._fields, zip(*identities, strict=True), strict=True)
    }
    return Identity(**fields)


def identity_words(one: Identity) -> str:
    """`pod payments-7d4f, java pid 4711`: the narrowest place that is known, then the process. Empty for nobody.

    What stands in a sentence behind the address, in parentheses.
    """
    return ", ".join(part for part in (_place(one), process_words(one)) if part)


def process_words(one: Identity) -> str:
    """`java pid 4711`, `java`, `pid 4711`; empty where no process is known."""
    pid = "" if one.pid is None else f"pid {one.pid}"
    return " ".join(part for part in (_word(one.command), pid) if part)


def _place(one: Identity) -> str:
    """A pod says more than its container, a container more than the host."""
    for kind, name in (("pod", one.pod), ("container", one.container), ("host", one.host)):
        if name:
            return f"{kind} {_word(name)}"
    return ""


def _word(name: str | None) -> str:
    return printable(name, MAX_WORDS) if name else ""


def _name(text: str | None) -> str | None:
    return (text.strip()[:MAX_NAME] or None) if text else None
