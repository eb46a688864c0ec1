"""The part of the report about connections that nobody could read. In: pairs of clients and servers; out: a section."""

from __future__ import annotations

from collections.abc import Sequence

from wirewitness.reports.base.formats.document import Block, Cells, Paragraph, Section, without_empty
from wirewitness.reports.base.formats.values import ms_text
from wirewitness.reports.base.formats.words import size, span
from wirewitness.reports.base.questions.encrypted import EncryptedPair
from wirewitness.reports.base.sections.traffic import more

_PAIRS_SHOWN = 20
_HEADER = (
    "CLIENT", "SERVER", "LIKELY", "CONNECTIONS", "TO SERVER", "TO CLIENT", "HANDSHAKE", "LASTED", "RHYTHM", "LACKS",
)  # fmt: skip


def encrypted_section(pairs: Sequence[EncryptedPair]) -> list[Section]:
    """Connections by client and server, with what they show without keys; nothing where all could be read."""
    if not pairs:
        return []
    cells = Cells(_HEADER, tuple(map(_row, pairs[:_PAIRS_SHOWN])), numbers=(3, 4, 5))
    text = (
        "What these connections show without keys. LIKELY is a guess: by ALPN, by the server's name (SNI) or its port."
    )
    blocks: list[Block] = [without_empty(cells), *more(len(pairs) - _PAIRS_SHOWN, "pair", "flows"), Paragraph(text)]
    return [Section("ENCRYPTED", tuple(blocks))]


def _row(pair: EncryptedPair) -> tuple[str, ...]:
    likely = pair.likely
    name = f" ({pair.sni})" if pair.sni else ""
    return (
        pair.client_address,
        f"{pair.server_address}:{pair.server_port}{name}",
        "" if likely is None else f"{likely[0]} ({likely[1]})",
        f"{pair.connections:,}",
        size(pair.bytes_to_server),
        size(pair.bytes_to_client),
        _handshake(pair),
        span(pair.lasted_ns),
        _rhythm(pair),
        pair.decryption or "",
    )


def _handshake(pair: EncryptedPair) -> str:
    took = "" if pair.handshake_ms is None else f" ({ms_text(pair.handshake_ms)} ms)"
    parts = [f"{pair.complete:,} complete{took}"] if pair.complete else []
    return ", ".join([*parts, f"{pair.failed:,} not"] if pair.failed else parts)


def _rhythm(pair: EncryptedPair) -> str:
    told = (("connection", pair.connection_every_ns), ("client packet", pair.client_packet_every_ns))
    return ", ".join(f"a {what} each {span(every_ns)}" for what, every_ns in told if every_ns)
