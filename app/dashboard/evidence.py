"""Packets that prove a finding, as `wirewitness extract --finding` writes them. In: a finding; out: a pcapng file."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from analyser.capture import in_time_order, open_captures
from analyser.evidence.choose import Choice, chosen_packets
from analyser.evidence.gather import add_evidence, add_message, add_secrets
from analyser.evidence.index import open_index
from analyser.evidence.write import PcapngWriter
from analyser.options import ReadOptions

_COMMENT = "raw packets chosen by wirewitness: evidence, not a whole capture"


def evidence_packets(
    paths: Sequence[str],
    options: ReadOptions,
    finding_id: str,
    evidence: Sequence[Mapping[str, Any]],
    *,
    redact: bool,
) -> bytes:
    """A pcapng file. The first question about a capture reads it through once. Raises CaptureError, BytesGone."""
    choice = Choice()
    with open_index(in_time_order(open_captures(list(paths))), options) as index:
        for row in add_evidence(choice, index, finding_id, evidence):
            add_message(choice, index, row)
        if redact:
            add_secrets(choice, index)
        file = io.BytesIO()
        writer = PcapngWriter(file, _COMMENT)
        for packet in chosen_packets(choice, index.sources, index.places):
            writer.write(packet)
    return file.getvalue()
