"""Limits of the capture layer. In: nothing. Out: one frozen value that every reader takes as an argument."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """What a capture may cost.

    block_bytes: how much is read, decoded and handed on at a time; a larger record makes the block grow. On small
        packets this layer is fastest at 2 to 4 MiB, at 16 MiB a fifth slower with twice the memory; larger blocks spare
        those who work per flow and batch.
    max_packet_bytes: no record is believed to be larger, whatever the snaplen of the file says.
    handover_ms: a block of a live source is handed on this long after its first byte, full or not.
    max_resyncs: how often reading goes on behind damage before the rest of the file is given up.
    max_pairs: endpoint pairs kept, for EndpointTable; packets of further pairs count as undecoded.
    fragment_timeout_s: fragments of one IP packet come within this time of the capture's clock.
    max_fragment_bytes, max_datagrams: unfinished IP packets kept, in memory and in number; the oldest are given up.
    clock_back_s, clock_forward_s: steps of the capture's clock that get a remark.
    max_remarks, max_interfaces, max_comments, max_names, max_secrets, max_secrets_bytes: what is kept in the
        statistics; further remarks and comments are counted.
    """

    block_bytes: int = 8 * MIB
    max_packet_bytes: int = 64 * MIB
    handover_ms: int = 100
    max_resyncs: int = 1000
    max_pairs: int = 4_000_000
    fragment_timeout_s: int = 30
    max_fragment_bytes: int = 16 * MIB
    max_datagrams: int = 10_000
    max_remarks: int = 200
    max_interfaces: int = 10_000
    max_comments: int = 1000
    max_names: int = 10_000
    max_secrets: int = 1000
    max_secrets_bytes: int = 16 * MIB
    clock_back_s: int = 1
    clock_forward_s: int = 86_400
