"""How much a hostile or damaged capture may cost. Reaching a limit is an expert info, never an exception.

In: nothing. Out: `Limits`, one frozen value that is handed down to everybody who reads captures.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wirewitness.dissectors.core.pool import Pool

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
    clock_back_s, clock_forward_s: steps of the capture's clock that get a remark; max_clock_remarks of them.
    usual_packing_ratio, packing_slack_of_all_bytes: compressed inputs are read up to so many times their size; what
        all of a run give beyond it. Packets of one payload pack as well as zeros.
    usual_rows_per_packed_byte, packing_slack_of_all_rows: so many packets, messages and rows may come of each of their
        bytes; what all of a run give beyond it.
    max_line_bytes: longer lines of a request log are passed over.
    max_stored_batch_bytes: no batch of a log segment is believed to be larger.
    segment_slack_bytes: behind damage in one, checksums are tried over 8 times what was read and so much.
    max_remarks, max_interfaces, max_comments, max_names, max_secrets, max_secrets_bytes: what is kept in the
        statistics; what is beyond is counted.
    """

    block_bytes: int = 8 * MIB
    max_packet_bytes: int = 64 * MIB
    handover_ms: int = 100
    max_resyncs: int = 1000
    max_pairs: int = 4_000_000
    fragment_timeout_s: int = 30
    max_fragment_bytes: int = 16 * MIB
    max_datagrams: int = 10_000
    usual_packing_ratio: int = 1000
    packing_slack_of_all_bytes: int = 32 * MIB
    usual_rows_per_packed_byte: int = 4
    packing_slack_of_all_rows: int = 200_000
    max_remarks: int = 200
    max_interfaces: int = 10_000
    max_comments: int = 1000
    max_names: int = 10_000
    max_secrets: int = 1000
    max_secrets_bytes: int = 16 * MIB
    clock_back_s: int = 1
    clock_forward_s: int = 86_400
    max_clock_remarks: int = 10
    max_line_bytes: int = 10 * MIB
    max_stored_batch_bytes: int = 128 * MIB
    segment_slack_bytes: int = 256 * MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of reading, streams and dissectors; sizes in bytes.

    capture: those of the capture layer.
    max_frame_bytes: a frame that claims more is damage, not a message (Kafka brokers refuse requests above 100 MiB by
        default, socket.request.max.bytes).
    max_pending_bytes: out-of-order bytes held per direction while a gap may still close.
    max_pending_packets: packets of a flow that may pass before an acknowledged gap is given up.
    max_held_bytes: memory that all open flows together take, with the overhead of objects: themselves, bytes out of
        order, incomplete frames, protocols not known yet, messages without an answer, held records (`core/budget.py`).
        Beyond it those that wait with most let go; where that is not enough, those idle longest end.
    max_open_flows: flows kept open at a time; beyond it those that were idle longest are ended.
    max_half_open: connection attempts without an answer that are remembered, and that get a row; the rest is counted.
        Each of several processes counts its own share, for none sees the attempts of the others.
    max_compared_pairs: pairs of endpoints whose packets are compared where a connection was captured at two points.
    max_history_bytes: delivered bytes kept over all flows to compare what is sent again.
    max_probe_bytes: bytes per direction looked at to identify a protocol.
    max_one_sided_bytes: of a connection joined in the middle, what one side may send before the other one is heard; a
        long answer would hide the protocol that the next request tells.
    max_outstanding: requests without a response held per flow.
    max_unheard: the same for a flow of which no response was ever captured; its requests need not wait for one.
    max_outstanding_tokens: the same for bare SASL tokens of Kafka; clients send one at a time.
    max_early, max_early_bytes: responses held per flow because their requests may come later; as many requests of
        Kafka go on waiting that the answer to a newer one overtook.
    max_fetch_sessions, max_fetch_session_partitions: Kafka fetch sessions remembered per flow, partitions of each.
    max_api_versions: APIs per flow of which is remembered what the broker offers and the client uses; Kafka has fewer
        than 100, a hostile answer could name 65,536.
    max_known_partitions: partitions per flow of which Kafka's metadata is remembered, so that only changes become rows.
    max_decompressed_bytes: what one compressed batch may give; the records of a larger one are read up to there.
    usual_compression_ratio, decompression_slack_bytes: a flow's compressed data may give this many times its size, and
        all that is beyond together the slack, so that a capture of bombs takes a time that its size bounds.
    carried_slack_bytes: the same slack where a carrier is compressed, whose bytes are in memory before they are read.
    decompression_slack_of_all_bytes: the slack of all flows together.
    usual_rows_per_compressed_byte, decompression_slack_of_all_rows: of a flow inside compression, so many messages and
        rows for each captured byte, as bytes in the clear may give; and what all flows together give beyond it.
    max_tls_tries_of_all_bytes: of TLS records that are tried with keys in vain, all flows together, beyond eight times
        the bytes that came.
    max_records_per_batch: records decoded of one batch.
    usual_records_per_compressed_byte, compressed_records_of_all: a compressed batch gives so many records for each of
        its bytes, and all flows together give beyond that.
    max_held_records_bytes: record data of Produce requests held per flow until their answers tell the offsets; with
        payload, documents of MongoDB requests that wait for a reply.
    max_held_stored_offsets: offsets of open transactions that wait for their ends, of one log segment; the oldest
        transactions count as open.
    max_logged_connections: connections of a request log that are remembered at a time; one that goes on after it was
        forgotten counts as another.
    max_payload_bytes: shown of one key, value or header.
    max_name_characters: of a name (client id, topic, group and the like) in tables; of a longer one its beginning, its
        length and a digest, since it may stand in every row.
    max_properties, max_filters: read of one MQTT packet; what is beyond is left out.
    max_topic_bytes: MQTT topics remembered per flow for their aliases.
    max_undecided_frames, max_undecided_bytes: MQTT packets of a flow held until its protocol level shows.
    max_expert_infos: remarks of a decoder kept per flow; the rest is counted.
    max_tcp_waits: waits that TCP imposed kept per flow.
    max_tcp_remarks: remarks on retransmissions and the like kept per flow and direction; the rest is counted.
    """

    capture: CaptureLimits = field(default_factory=CaptureLimits)
    max_frame_bytes: int = 110 * MIB
    max_pending_bytes: int = 4 * MIB
    max_pending_packets: int = 64
    max_held_bytes: int = 1024 * MIB
    max_open_flows: int = 100_000
    max_half_open: int = 10_000
    max_compared_pairs: int = 20_000
    max_history_bytes: int = 16 * MIB
    max_probe_bytes: int = 64 * 1024
    max_one_sided_bytes: int = 4 * MIB
    max_outstanding: int = 20_000
    max_unheard: int = 200
    max_outstanding_tokens: int = 16
    max_early: int = 1024
    max_early_bytes: int = 2 * MIB
    max_fetch_sessions: int = 16
    max_fetch_session_partitions: int = 50_000
    max_api_versions: int = 256
    max_known_partitions: int = 50_000
    max_decompressed_bytes: int = 64 * MIB
    usual_compression_ratio: int = 100
    decompression_slack_bytes: int = 256 * MIB
    carried_slack_bytes: int = 64 * MIB
    decompression_slack_of_all_bytes: int = 512 * MIB
    usual_rows_per_compressed_byte: int = 5
    decompression_slack_of_all_rows: int = 200_000
    max_tls_tries_of_all_bytes: int = 512 * MIB
    max_records_per_batch: int = 500_000
    usual_records_per_compressed_byte: int = 5
    compressed_records_of_all: int = 5_000_000
    max_held_records_bytes: int = 32 * MIB
    max_logged_connections: int = 20_000
    max_held_stored_offsets: int = 100_000
    max_payload_bytes: int = MIB
    max_name_characters: int = 1024
    max_properties: int = 1000
    max_filters: int = 10_000
    max_topic_bytes: int = 4 * MIB
    max_undecided_frames: int = 200
    max_undecided_bytes: int = 256 * 1024
    max_expert_infos: int = 100
    max_tcp_waits: int = 1000
    max_tcp_remarks: int = 50
    decompression_slack: Pool = field(init=False, repr=False, compare=False)
    decompression_slack_rows: Pool = field(init=False, repr=False, compare=False)
    compressed_records: Pool = field(init=False, repr=False, compare=False)
    tls_tries: Pool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """What all flows share: so these are the limits of one run."""
        object.__setattr__(self, "decompression_slack", Pool(self.decompression_slack_of_all_bytes))
        object.__setattr__(self, "decompression_slack_rows", Pool(self.decompression_slack_of_all_rows))
        object.__setattr__(self, "compressed_records", Pool(self.compressed_records_of_all))
        object.__setattr__(self, "tls_tries", Pool(self.max_tls_tries_of_all_bytes))
