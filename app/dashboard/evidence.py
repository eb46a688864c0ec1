"""Packets that prove a finding, as `wirewitness extract --finding` writes them. In: a finding; out: a pcapng file."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from wirewitness.analyser.analysis.evidence.choose import Choice, chosen_packets
from wirewitness.analyser.analysis.evidence.gather import add_evidence, add_hidden, add_message
from wirewitness.analyser.analysis.evidence.logged import is_logged
from wirewitness.analyser.analysis.evidence.write import PcapngWriter
from wirewitness.app.dashboard.opened import Opened
from wirewitness.app.dashboard.packets import packet_index

# What a browser takes is held in memory, here and there; the command line writes to a file.
MOST_BYTES = 64_000_000
_COMMENT = "raw packets chosen by wirewitness: evidence, not a whole capture"


class TooLarge(ValueError):
    """More than a download may have; the text is a sentence."""


def evidence_packets(opened: Opened, finding_id: str, evidence: Sequence[Mapping[str, Any]], *, redact: bool) -> bytes:
    """A pcapng file of at most MOST_BYTES. Raises TooLarge, NoPackets, CaptureError, BytesGone."""
    choice = Choice()
    with packet_index(opened) as index:
        for row in add_evidence(choice, index, finding_id, evidence):
            if not is_logged(row, index.sources):
                add_message(choice, index, row)
        if redact:
            add_hidden(choice, index)
        file = io.BytesIO()
        writer = PcapngWriter(file, _COMMENT)
        for packet in chosen_packets(choice, index.sources, index.places):
            writer.write(packet)
            if file.tell() > MOST_BYTES:
                raise TooLarge(f"The evidence of {finding_id} has more than {MOST_BYTES:,} bytes.")
    return file.getvalue()
