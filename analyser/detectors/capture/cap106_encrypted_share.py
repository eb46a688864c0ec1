"""CAP106 encrypted-share: flows that speak TLS, which is not decrypted here.

Finds
    Flows whose first bytes are TLS records, with the server names that clients asked for.

Why it matters
    Nothing inside them is seen by any rule. If the flows in question are among them, silence means nothing.

How it decides
    A ClientHello, or records of TLS in both directions; ports do not count. All in one finding for the whole capture.

False alarms
    A flow that begins in the middle of a connection and happens to look like a TLS record.

References
    RFC 8446, record layer and ClientHello; RFC 6066, server_name.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.flow_rows import FLOW_COLUMNS, MOST_NAMED, endpoints_text
from analyser.detectors.frame_rows import rows_of
from analyser.detectors.proof import REMARK_COLUMNS, proof_of
from analyser.words import count


def detect(frames: Frames, *, flows_least: int = 1) -> Iterator[Finding]:
    """At most one finding, from `flows_least` encrypted flows on."""
    flows = rows_of(frames["flows"])
    proof = rows_of(frames["expert_infos"])
    encrypted = [f for f in flows if f["encrypted"]]
    if not proof or len(encrypted) < flows_least:
        return
    carried, hidden = (sum(f["bytes_to_server"] + f["bytes_to_client"] for f in held) for held in (flows, encrypted))
    names = sorted({f["sni"] for f in encrypted if f["sni"]})
    asked = f", for {', '.join(names[:3])}{' and others' if len(names) > 3 else ''}" if names else ""
    yield DETECTOR.finding(
        subject={"capture": "all"},
        sentence=(
            f"{len(encrypted)} of {count(len(flows), 'flow')} with data are encrypted (TLS{asked}), with "
            f"{hidden / max(carried, 1):.0%} of the stream bytes, for example between {endpoints_text(encrypted[0])}. "
            "No rule sees what is inside."
        ),
        next_step="If the answer may be in them, capture behind the point where TLS ends.",
        proof=proof_of(proof),
        numbers={
            "flows": len(flows),
            "encrypted_flows": len(encrypted),
            "stream_bytes": carried,
            "encrypted_bytes": hidden,
            "server_names": names[:MOST_NAMED],
            "examples": [{"flow_id": f["flow_id"], "endpoints": endpoints_text(f)} for f in encrypted[:MOST_NAMED]],
        },
    )


DETECTOR = Detector(
    code="CAP106",
    name="encrypted-share",
    severity="info",
    confidence="high",
    reads={
        "flows": (*FLOW_COLUMNS, "encrypted", "sni", "bytes_to_server", "bytes_to_client"),
        "expert_infos": (*REMARK_COLUMNS, "flow_id"),
    },
    partition_by=(),
    detect=detect,
    rows={
        "flows": "bytes_to_server + bytes_to_client > 0 AND duplicate_of IS NULL "
        "AND EXISTS (SELECT 1 FROM expert_infos WHERE code = 'encrypted')",
        "expert_infos": "code = 'encrypted' AND ts IS NOT NULL",
    },
)
