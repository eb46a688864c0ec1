r"""What ptcpdump writes into the comments of packets. In: the text of a comment. Out: what it says of a process.

Source: ptcpdump's internal/writer/pcapng.go and internal/types/context.go. A packet has up to six comments, each of
lines `Key: value`:

    PID: 4711\nCmd: /usr/bin/java\nArgs: java -jar payments.jar
    ThreadId: 4730\nThreadName: kafka-producer
    UserId: 1000\nGroupId: 1000
    ParentPID: 1\nParentCmd: /sbin/init\nParentArgs: init
    ContainerName: payments\nContainerId: 8f14e45f...\nContainerImage: shop/payments:3\nContainerLabels: {...}
    PodName: payments-7d4f\nPodNamespace: shop\nPodUID: ...\nPodLabels: {...}\nPodAnnotations: {...}

Arguments may hold credentials: they are not kept. What stands behind the first line that a comment of its kind does not
have was written by the process itself, as in arguments with line ends, and is not read.
"""

from __future__ import annotations

from typing import NamedTuple

# Keys by the first key of a comment. Older versions write Command and TID.
_KINDS: dict[str, tuple[str, ...]] = {
    "PID": ("PID", "Cmd", "Command"),
    "UserId": ("UserId", "GroupId", "UserName"),
    "ContainerName": ("ContainerName", "ContainerId"),
    "PodName": ("PodName", "PodNamespace"),
    "ThreadId": ("ThreadId", "ThreadName"),
    "TID": ("TID", "ThreadName"),
    "ParentPID": ("ParentPID",),
}
MAX_READ_BYTES = 1024  # of a comment: what is read stands first
_CUT = "..."
_SHORT_ID = 12  # as `docker ps` shows an id


class Said(NamedTuple):
    """What comments of one packet say of its process; None what they do not."""

    pid: int | None = None
    command: str | None = None
    user: str | None = None
    container: str | None = None
    pod: str | None = None
    namespace: str | None = None


def said(comment: bytes) -> Said | None:
    """What one comment says: nothing known where it is of a thread or parent, None where ptcpdump did not write it."""
    first = comment.partition(b":")[0].decode("utf-8", "replace")
    keys = _KINDS.get(first)
    if keys is None:
        return None
    found: dict[str, str] = {}
    for line in comment[:MAX_READ_BYTES].decode("utf-8", "replace").split("\n"):
        key, colon, value = line.partition(":")
        if not colon or key not in keys or key in found:
            break
        found[key] = value.strip()
    command = (found.get("Cmd") or found.get("Command") or "").removesuffix(_CUT).rpartition("/")[2]
    return Said(
        pid=_number(found.get("PID")),
        command=command or None,
        user=found.get("UserName") or (found.get("UserId") if _number(found.get("UserId")) is not None else None),
        container=found.get("ContainerName") or (found.get("ContainerId") or "")[:_SHORT_ID] or None,
        pod=found.get("PodName") or None,
        namespace=found.get("PodNamespace") or None,
    )


def together(parts: list[Said]) -> Said:
    """What several comments of one packet say; the first one counts."""
    return Said(*(next((value for value in values if value is not None), None) for values in zip(*parts, strict=True)))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= 10 else None
