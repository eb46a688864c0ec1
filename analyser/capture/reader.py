"""Reading one capture. In: a source. Out: batches of TCP segments, and the statistics of the capture."""

from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, cast

from wirewitness.analyser.capture.blocks import BlockBuffer
from wirewitness.analyser.capture.clock import Clock
from wirewitness.analyser.capture.encodings import AsUtf8, utf_16_of
from wirewitness.analyser.capture.endpoints import EndpointTable
from wirewitness.analyser.capture.errors import CaptureError
from wirewitness.analyser.capture.foreign import HEAD_BYTES, describe_bytes
from wirewitness.analyser.capture.fragments import Fragments
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.link import LINK_LAYERS
from wirewitness.analyser.capture.log_segment import FORMAT as LOG_SEGMENT
from wirewitness.analyser.capture.log_segment import is_log_segment
from wirewitness.analyser.capture.model import CaptureStats, PacketBatch, Records, Remark, add_remark
from wirewitness.analyser.capture.packing import Counted, Packing, Unpacked, note_packed
from wirewitness.analyser.capture.pcap import FILE_HEADER_BYTES, MAGICS, PcapWalker
from wirewitness.analyser.capture.pcapng import SECTION_BYTES, PcapngWalker
from wirewitness.analyser.capture.request_log import FORMAT as REQUEST_LOG
from wirewitness.analyser.capture.request_log import is_request_log
from wirewitness.analyser.capture.segments import decode_records
from wirewitness.analyser.capture.sources import COMPRESSIONS, Source, decompressed, explain

# Names of link types that are not decoded. In: a number. Out: its name. Source: tcpdump.org/linktypes.html.

LINK_NAMES = {
    3: "AX.25",
    6: "Token Ring",
    7: "ARCNET",
    10: "FDDI",
    11: "ATM LLC",
    100: "ATM RFC 1483",
    105: "IEEE 802.11",
    107: "Frame Relay",
    109: "OpenBSD IPsec",
    117: "OpenBSD pflog",
    119: "IEEE 802.11 with Prism header",
    127: "IEEE 802.11 with radiotap header",
    138: "IP over FireWire",
    163: "IEEE 802.11 with AVS header",
    187: "Bluetooth HCI",
    189: "Linux USB",
    192: "Per-Packet Information",
    195: "IEEE 802.15.4",
    197: "Extensible Record Format",
    201: "Bluetooth HCI with direction",
    220: "Linux USB with padding",
    224: "Fibre Channel",
    227: "CAN bus",
    230: "IEEE 802.15.4 without check sequence",
    239: "Linux NFLOG",
    247: "InfiniBand",
    249: "USBPcap",
    251: "Bluetooth Low Energy",
    253: "Linux netlink",
    258: "Apple PKTAP",
    **{147 + number: f"private use {number}" for number in range(16)},
}


def link_name(number: int) -> str:
    """`105 IEEE 802.11`, or only the number where no name is known."""
    return f"{number} {LINK_NAMES[number]}" if number in LINK_NAMES else str(number)


DEFAULT_LIMITS = CaptureLimits()
# Reasons for undecoded packets that can hide TCP bytes of a whole capture; the others are counted without a remark
UNDECODED_REMARKS = {
    "unknown_link_type": "packets are of a link type that is not decoded ({})",
    "unknown_interface": "packets name an interface that the capture does not describe",
    "ip_fragment": "IP fragments belong to packets that are not whole; TCP bytes in them are missing",
    "ip_tunnel": "packets are in a kind of GRE tunnel that is not looked into",
    "mpls": "packets behind MPLS labels are neither IP nor Ethernet",
    "too_many_headers": "packets are wrapped in too many headers",
    "too_many_pairs": "TCP segments are left out because the table of endpoint pairs is full",
}
PROCESS_REMARKS = {
    "undirected": "packets name a process but not whether it sent or receives them; nobody is named by these",
    "undescribed": "packets name a process that the file does not describe; nobody is named by these",
}
# What a reached limit cost, by its code in CaptureStats.beyond_limits; said however many other remarks there are
LIMIT_REMARKS = {
    "too_many_remarks": "further remarks on this capture are not kept",
    "too_many_comments": "further comments in the capture are not kept",
    "too_many_interfaces": "interface descriptions are passed over; packets that name them are not decoded",
    "too_many_names": "further names of addresses in the capture are not kept",
    "too_many_owners": "further sightings of processes at connections are not kept; nobody is named there",
    "too_many_secrets": "further blocks of decryption secrets are not kept",
    "too_many_clock_steps": "further steps of the capture's clock have no remark of their own",
    "fragments_given_up": "unfinished IP packets were given up to make room for newer ones; TCP bytes may be missing",
    "too_many_damages": "damaged places are enough: the rest of the file is not read",
}


# Files without packets, by their formats.
OTHER_KINDS = {REQUEST_LOG: is_request_log, LOG_SEGMENT: is_log_segment}
_KAFKA = "Kafka "


class Packets(NamedTuple):
    """The packets of one block: its bytes, where each record lies in them, and the TCP segments among them."""

    data: bytearray
    records: Records
    batch: PacketBatch


def read_batches(
    source: Source,
    endpoints: EndpointTable,
    stats: CaptureStats,
    limits: CaptureLimits = DEFAULT_LIMITS,
    on_other: Callable[[str, BlockBuffer], None] | None = None,
    packing: Packing | None = None,
) -> Iterator[PacketBatch]:
    """The TCP segments of a capture, block by block, in capture order; `stats` grows on the way.

    A batch's `data` is valid until the next batch is requested; a block without segments yields none. Raises
    CaptureError when the source cannot be opened or is no capture; damage further on is a remark in `stats`.
    on_other: reads what gives no batches: a request log or a log segment, as the first argument says by its format;
        None where only packets will do.
    packing: as in `open_blocks`.
    """
    for packets in read_packets(source, endpoints, stats, limits, on_other, packing):
        if len(packets.batch):
            yield packets.batch


def read_packets(
    source: Source,
    endpoints: EndpointTable,
    stats: CaptureStats,
    limits: CaptureLimits = DEFAULT_LIMITS,
    on_other: Callable[[str, BlockBuffer], None] | None = None,
    packing: Packing | None = None,
) -> Iterator[Packets]:
    """All packets of a capture, those without TCP too, block by block; see `read_batches`."""
    for remark in source.remarks:
        add_remark(stats, limits.max_remarks, remark)
    with source.open() as stream:
        blocks = open_blocks(BlockBuffer(stream, limits), stats, limits, source.name, packing)
        if on_other is not None and (kind := _other_kind(blocks)) is not None:
            on_other(kind, blocks)
            if blocks.error:
                add_remark(stats, limits.max_remarks, _read_failed(blocks.error, None, blocks.offset(blocks.end)))
            _note_limits(stats, blocks.offset(blocks.end))
            note_packed(packing, stats, blocks.offset(blocks.end))
            return
        fragments, clock = Fragments(limits, stats), Clock(limits, stats)
        for records in read_records(blocks, stats, limits, source):
            clock.watch(records)
            batch = decode_records(blocks.data, records, endpoints, stats, fragments)
            yield Packets(blocks.data, records, batch)
            del batch
    note_end(stats, limits, blocks.offset(blocks.end), blocks.error)


def open_blocks(
    blocks: BlockBuffer, stats: CaptureStats, limits: CaptureLimits, name: str, packing: Packing | None = None
) -> BlockBuffer:
    """The blocks of the capture itself: decompressed when the first bytes say so. packing: of all inputs of the run;
    None where this is the only one and its rows are not counted."""
    blocks.need(FILE_HEADER_BYTES)
    head = bytes(blocks.data[blocks.start : min(blocks.end, blocks.start + 4)])
    compression = next((kind for magic, kind in COMPRESSIONS.items() if head.startswith(magic)), "")
    if not compression:
        return _as_utf_8(blocks, limits)
    stats.compression = compression
    packing = packing or Packing(limits)
    packing.begin(stats)
    stream, failures = decompressed(compression, cast(BinaryIO, Counted(blocks.rest_of_stream(), packing)))
    inner = BlockBuffer(cast(BinaryIO, Unpacked(stream, packing, stats, limits.block_bytes)), limits, failures)
    inner.need(FILE_HEADER_BYTES)
    if inner.start == inner.end:
        raise CaptureError(f"{name} is {compression}-compressed, but nothing can be unpacked from it{_because(inner)}.")
    return _as_utf_8(inner, limits)


def _as_utf_8(blocks: BlockBuffer, limits: CaptureLimits) -> BlockBuffer:
    """The same blocks; a text in UTF-16 as UTF-8."""
    encoding = utf_16_of(bytes(blocks.data[blocks.start : min(blocks.end, blocks.start + HEAD_BYTES)]))
    if encoding is None:
        return blocks
    inner = BlockBuffer(cast(BinaryIO, AsUtf8(blocks.rest_of_stream(), encoding)), limits, blocks.failures)
    inner.need(FILE_HEADER_BYTES)
    return inner


def read_records(blocks: BlockBuffer, stats: CaptureStats, limits: CaptureLimits, source: Source) -> Iterator[Records]:
    """The link-layer records, one value for each block of bytes; CaptureError when the bytes are no capture."""
    walker = open_walker(blocks, stats, limits, source)
    while True:
        records = walker.walk()
        if len(records.start):
            yield records
        if blocks.eof:
            return
        blocks.fill()


def open_walker(
    blocks: BlockBuffer, stats: CaptureStats, limits: CaptureLimits, source: Source
) -> PcapWalker | PcapngWalker:
    """What finds the records in these blocks, by the first bytes; CaptureError when they are no capture."""
    name = source.name
    whole = blocks.need(FILE_HEADER_BYTES)
    head = bytes(blocks.data[blocks.start : min(blocks.end, blocks.start + HEAD_BYTES)])
    if not head and isinstance(blocks.failure, OSError):
        raise CaptureError(explain(name, blocks.failure)) from blocks.failure
    if not head:
        why = f"cannot be read: {blocks.error}" if blocks.error else "is empty (0 bytes), not a capture"
        raise CaptureError(f"{name} {why}.")
    if head[:4] in MAGICS or head[:4] == SECTION_BYTES:
        if not whole:
            raise CaptureError(f"{name} is cut inside its file header: only {len(head)} bytes.")
        if head[:4] in MAGICS:
            return PcapWalker(blocks, stats, limits, source.record_header_bytes)
        return PcapngWalker(blocks, stats, limits)
    kind = _other_kind(blocks)
    if kind is not None:
        raise CaptureError(
            f"{name} is a {kind.replace(_KAFKA, '')} of Kafka: it has no packets, which are wanted here."
        )
    raise CaptureError(f"{name} is not a capture: {describe_bytes(head)}.")


def _other_kind(blocks: BlockBuffer) -> str | None:
    """The format of what has no packets; None for anything else."""
    if not is_text(blocks):
        return None
    return next((kind for kind, knows in OTHER_KINDS.items() if knows(blocks)), None)


def is_text(blocks: BlockBuffer) -> bool:
    """Do these blocks begin with neither magic of a capture?"""
    blocks.need(FILE_HEADER_BYTES)
    head = bytes(blocks.data[blocks.start : min(blocks.end, blocks.start + 4)])
    return bool(head) and head not in MAGICS and head != SECTION_BYTES


def _read_failed(error: str, packet: int | None, end: int) -> Remark:
    return Remark("error", "read_failed", f"reading stopped: {error}", packet, end)


def _because(blocks: BlockBuffer) -> str:
    return f" ({blocks.error})" if blocks.error else ""


def note_end(stats: CaptureStats, limits: CaptureLimits, end: int, error: str) -> None:
    """What is remarked when a capture was read to its `end`, a byte offset. error: why that is not its true end."""
    most, undecoded = limits.max_remarks, stats.undecoded_packets
    if error:
        add_remark(stats, most, _read_failed(error, stats.packets, end))
    if not stats.packets:
        add_remark(stats, most, Remark("note", "no_packets", "the capture holds no packets", None, end))
    for code, number in (("undirected", stats.identities.undirected), ("undescribed", stats.identities.undescribed)):
        if number:
            add_remark(stats, most, Remark("note", f"{code}_process", f"{number} {PROCESS_REMARKS[code]}", None, 0))
    unknown = ", ".join(link_name(number) for number in stats.link_types if number not in LINK_LAYERS)
    for reason, text in UNDECODED_REMARKS.items():
        if undecoded[reason]:
            text = f"{undecoded[reason]} {text.format(unknown)}"
            add_remark(stats, most, Remark("warn", reason, text, None, 0))
    _note_limits(stats, end)
    # in the order of the packets, not of the blocks they were found in
    stats.remarks.sort(key=lambda remark: (remark.packet is None, remark.packet or 0, remark.code))


def _note_limits(stats: CaptureStats, end: int) -> None:
    beyond = stats.beyond_limits
    beyond["too_many_comments"], beyond["too_many_remarks"] = stats.comments_dropped, stats.remarks_dropped
    beyond["too_many_owners"] = stats.identities.dropped
    for code, text in LIMIT_REMARKS.items():
        if beyond[code]:
            stats.remarks.append(Remark("warn", code, f"{beyond[code]} {text}", None, end))
    note_packed(None, stats, end)
