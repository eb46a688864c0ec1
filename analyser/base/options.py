"""What a caller may set for reading captures: one value, passed down unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of `analyser.read`.

    decode_as: server port -> protocol name; overrules what the bytes look like.
    protocols: show only these protocols; empty for all. Rows of other protocols never enter the tables; findings
        of rules about other protocols are not shown, those about connections of any protocol are.
    enable: optional dissectors to switch on.
    payload: keep what applications sent (keys, values, headers of records) in tables; sizes are there in any case.
    payload_columns: with payload, keep only these of the columns key, value and headers; empty for all.
    topic_ids: topic id, as Kafka's tools print it -> name; overrules what the capture says.
    log_zone_ns: how far the times of a request log that name no zone are ahead of UTC; None: they are taken as UTC.
    keylogs: paths of files with secrets of TLS (SSLKEYLOGFILE); the secrets stay in memory.
    hosts: paths of files that name addresses: who is at a client's or server's end.
    processes: how many read at the same time; the tables do not depend on it unless a limit on all flows is reached,
        which every process counts for itself.
    from_ns, to_ns: Unix time in ns; select output rows by their `ts`, never input packets.
    """

    decode_as: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    protocols: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    payload: bool = False
    payload_columns: tuple[str, ...] = ()
    from_ns: int | None = None
    to_ns: int | None = None
    processes: int = 1
    keylogs: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    log_zone_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far reading is: `total_bytes` is None where the size is not known (standard input).

    counted: what there are `packets` of where it is no capture: lines, batches.
    """

    file: str
    done_bytes: int
    total_bytes: int | None
    packets: int
    counted: str = "packets"


ProgressCallback = Callable[[Progress], None]
