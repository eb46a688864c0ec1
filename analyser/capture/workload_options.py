"""An identity as options of a packet in pcapng. In: what the kernel says of one end of a connection. Out: bytes.

Comments in ptcpdump's form (internal/writer/pcapng.go), which every Wireshark shows and ptcpdump reads; epb_flags,
whose direction says which end is meant; epb_processid_threadid (option 8 of draft-ietf-opsawg-pcapng), which Wireshark
4.7 shows. Wireshark 4.7 also describes processes in custom blocks; older versions number each of those as a packet, so
packets would have other numbers than in reports, and none is written.
"""

from __future__ import annotations

import re
import struct

from wirewitness.analyser.base.words import printable
from wirewitness.analyser.capture.workloads.kernel.lookup import LocalIdentity
from wirewitness.analyser.capture.workloads.workload import Identity

_COMMENT, _FLAGS, _PROCESS = 1, 2, 8
_INBOUND, _OUTBOUND = 1, 2
_MOST_CHARACTERS = 253
_SHORT_ID = re.compile(r"[0-9a-f]{12}|[0-9a-f]{64}")


def identity_options(one: LocalIdentity, *, sent: bool) -> bytes:
    """Options for a packet that this end sent, or else received; in this machine's byte order, without an end mark."""
    return b"".join(
        struct.pack("=HH", code, len(value)) + value + bytes(-len(value) % 4)
        for code, value in options_of(one, "=", sent=sent)
    )


def options_of(one: LocalIdentity, order: str, *, sent: bool) -> list[tuple[int, bytes]]:
    """The same as (code, value). order: as `struct` names byte orders."""
    options = [(_COMMENT, text.encode("utf-8", "replace")) for text in comments(one)]
    options.append((_FLAGS, struct.pack(order + "I", _OUTBOUND if sent else _INBOUND)))
    if sent and one.pid is not None:
        options.append((_PROCESS, struct.pack(order + "II", one.pid, 0)))
    return options


def local_identity(one: Identity) -> LocalIdentity:
    """An identity that a capture told, as far as a comment has a place for it."""
    is_number = one.user is not None and one.user.isascii() and one.user.isdecimal()
    is_id = one.container is not None and _SHORT_ID.fullmatch(one.container) is not None
    return LocalIdentity(
        pid=one.pid,
        command=one.command,
        uid=int(one.user) if one.user is not None and is_number else None,
        user=None if is_number else one.user,
        container_id=one.container if is_id else None,
        container=None if is_id else one.container,
        pod=one.pod,
        namespace=one.namespace,
    )


def comments(one: LocalIdentity) -> list[str]:
    """The comments: of the process, its user, its container and its pod, each in lines `Key: value`.

    UserName is no key of ptcpdump, which passes it over.
    """
    groups = (
        (("PID", one.pid), ("Cmd", one.command)),
        (("UserId", one.uid), ("UserName", one.user)),
        (("ContainerName", one.container), ("ContainerId", one.container_id)),
        (("PodName", one.pod), ("PodNamespace", one.namespace), ("PodUID", one.pod_uid)),
    )
    return [
        "\n".join(f"{key}: {_word(value)}" for key, value in group if value is not None or key == group[0][0])
        for group in groups
        if any(value is not None for _, value in group)
    ]


def _word(value: int | str | None) -> str:
    """In one line: a process names itself."""
    return "" if value is None else printable(str(value), _MOST_CHARACTERS)
