"""How much a hostile or damaged capture may cost. Reaching a limit is an expert info, never an exception."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of streams and dissectors; sizes in bytes.

    max_frame_bytes: a frame that claims more is damage, not a message (Kafka brokers refuse requests above 100 MiB by
        default, socket.request.max.bytes).
    max_pending_bytes: out-of-order bytes held per direction while a gap may still close.
    max_pending_packets: packets of a flow that may pass before an acknowledged gap is given up.
    max_probe_bytes: bytes per direction looked at to identify a protocol.
    max_outstanding: requests without a response held per flow.
    max_fetch_session_partitions: partitions remembered per Kafka fetch session.
    max_expert_infos: remarks kept per flow; the rest is counted.
    """

    max_frame_bytes: int = 110 * MIB
    max_pending_bytes: int = 4 * MIB
    max_pending_packets: int = 64
    max_probe_bytes: int = 64 * 1024
    max_outstanding: int = 20_000
    max_fetch_session_partitions: int = 50_000
    max_expert_infos: int = 100
