"""Captures in, arrays of TCP segments out.

In: pcap or pcapng files (also gzip, zstd or lz4), directories of them, or binary streams. Out: PacketBatch values, one
for each block of bytes, with dense ids for endpoint pairs; CaptureStats say what else was in the capture. Of a request
log of Kafka: its lines (`RequestLog`); of a log segment: its batches (`LogSegment`).
"""

from wirewitness.analyser.capture.blocks import BlockBuffer
from wirewitness.analyser.capture.endpoints import Endpoints, EndpointTable
from wirewitness.analyser.capture.errors import CaptureError
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.log_segment import LogSegment
from wirewitness.analyser.capture.model import (
    CaptureStats,
    Comment,
    Interface,
    PacketBatch,
    Remark,
    Secret,
    TimeBackwards,
)
from wirewitness.analyser.capture.opening import in_time_order, open_captures
from wirewitness.analyser.capture.reader import read_batches
from wirewitness.analyser.capture.request_log import RequestLog
from wirewitness.analyser.capture.sources import Source

__all__ = [
    "BlockBuffer",
    "CaptureError",
    "CaptureLimits",
    "CaptureStats",
    "Comment",
    "EndpointTable",
    "Endpoints",
    "Interface",
    "LogSegment",
    "PacketBatch",
    "Remark",
    "RequestLog",
    "Secret",
    "Source",
    "TimeBackwards",
    "in_time_order",
    "open_captures",
    "read_batches",
]
