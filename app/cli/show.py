"""`wirewitness show`: one message with all its fields. In: captures and a message id; out: field tree and hex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.locating import open_located
from wirewitness.app.cli.output import result_sink, terminal_width
from wirewitness.app.shared.failure import CallerError, Status
from wirewitness.app.shared.options import locating_options
from wirewitness.app.shared.reading import complain_of_faults

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.evidence.index import Index
    from wirewitness.analyser.analysis.evidence.rows import MessageRow
    from wirewitness.analyser.capture.workloads.address_names import AddressNames
    from wirewitness.reports.base.formats.message_view import MessageView


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="CAPTURE... MESSAGE_ID")
@click.option(
    "--packet",
    metavar="[FILE:]N",
    help="The messages that end in packet N, or are in line N of a log, in place of MESSAGE_ID.",
)
@click.option("--exchange", is_flag=True, help="Also the response of a request, the request of a response.")
@click.option("--bytes", "hex_bytes", type=click.IntRange(min=0), default=512, show_default=True, metavar="N",
              help="At most N bytes of hex.")  # fmt: skip
@click.option("--payload", is_flag=True, help="Show what applications sent (keys and values of records) too.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@locating_options
def show(
    *,
    words: tuple[str, ...],
    packet: str | None,
    exchange: bool,
    hex_bytes: int,
    payload: bool,
    form: str,
    **locating: Any,
) -> Status:
    """Show one message of CAPTURE...: every field with its bytes and the packets they came in, then the bytes.

    MESSAGE_ID is what the tables and findings say; an exchange id is the id of its request. Credentials are masked.
    What captures hold is kept in the user's cache folder, so that the next question is answered at once.

    \b
    Examples:
      wirewitness show incident.pcapng 3f6c1e0a9b2d4c58-c-1042
      wirewitness show incident.pcapng 3f6c1e0a9b2d4c58-c-1042 --exchange --format json
      wirewitness show incident.pcapng --packet 1234
    """  # fmt: skip
    captures, wanted = (words, None) if packet is not None else (words[:-1], words[-1])
    if not captures:
        raise click.UsageError("a capture and a message id are needed: wirewitness show CAPTURE... MESSAGE_ID")
    from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later

    import_pandas_later()
    hosts = tuple(locating["hosts"])
    faults: list[str] = []
    with open_located(captures, locating) as (index, some_missing):
        names = _names(hosts)
        rows = _rows(index, wanted, packet)
        if exchange:
            rows = [both for row in rows for both in _exchange(index, row)]
        with result_sink(None, text=form == "text") as write:
            for piece in _pieces(index, rows, form, hex_bytes, names, faults, payload=payload):
                write(piece.encode("utf-8", "backslashreplace"))
    complain_of_faults(faults)
    if faults:
        return Status.OWN_FAULT
    return Status.SOME_INPUT_UNREAD if some_missing else Status.DONE


def _rows(index: Index, wanted: str | None, packet: str | None) -> list[MessageRow]:
    from wirewitness.analyser.analysis.evidence.rows import UnknownId, parse_message_id

    try:
        if wanted is not None:
            return [index.message(parse_message_id(wanted))]
        found = index.completed_in(packet_number(index, packet or ""))
    except UnknownId as error:
        raise CallerError(str(error)) from error
    if not found:
        raise CallerError(_none_in(index, packet or ""))
    return found


def _none_in(index: Index, packet: str) -> str:
    """Why there is no message in a packet, or in what stands in its place."""
    from wirewitness.dissectors.core.model import split_packet

    source = index.sources[split_packet(packet_number(index, packet))[0]]
    if source.is_segment:
        return f"{source.name} is a log segment: it has records, no messages; `wirewitness records` shows them"
    return f"no message {'is in line' if source.is_log else 'ends in packet'} {packet}"


def packet_number(index: Index, text: str) -> int:
    """File and number in one, see `packet_of`. CallerError for a wrong text."""
    from wirewitness.dissectors.core.model import packet_of

    name, _, number = text.rpartition(":")
    names = [source.name for source in index.sources]
    if not number.isdecimal() or not number.isascii() or not 0 < int(number) < 1 << 40:
        raise CallerError(f"--packet {text}: write a packet's number, or FILE:NUMBER")
    matching = [place for place, known in enumerate(names) if not name or known == name or known.endswith(f"/{name}")]
    if len(matching) != 1:
        raise CallerError(f"--packet {text}: name the file as in FILE:{number}; there are {', '.join(names)}")
    return packet_of(matching[0], int(number))


def _exchange(index: Index, row: MessageRow) -> list[MessageRow]:
    partner = index.partner(row)
    return [row] if partner is None else sorted((row, partner), key=lambda one: one.direction)


def _pieces(
    index: Index,
    rows: list[MessageRow],
    form: str,
    hex_bytes: int,
    names: AddressNames | None,
    faults: list[str],
    *,
    payload: bool,
) -> Any:
    """faults: gets a sentence for each message that could not be looked into by a fault of our own."""
    from wirewitness.reports.base.formats.message_view import json_value, text_lines

    if form == "json":
        from wirewitness.analyser.base.words import json_text
        from wirewitness.analyser.tables.tables import SCHEMA_VERSION

        values = [json_value(_view(index, row, names, faults, payload=payload), hex_bytes) for row in rows]
        yield json_text({"schema_version": SCHEMA_VERSION, "messages": values}, indent=2) + "\n"
        return
    for place, row in enumerate(rows):
        yield "\n" if place else ""
        for line in text_lines(_view(index, row, names, faults, payload=payload), terminal_width(), hex_bytes):
            yield line + "\n"


def _names(hosts: tuple[str, ...]) -> AddressNames | None:
    if not hosts:
        return None
    from wirewitness.analyser.base.options import ReadOptions
    from wirewitness.analyser.decoding.run.address_names import named_addresses

    return named_addresses(ReadOptions(hosts=hosts))


def _view(
    index: Index, row: MessageRow, names: AddressNames | None, faults: list[str], *, payload: bool
) -> MessageView:
    from wirewitness.analyser.analysis.evidence.bytes import BytesGone
    from wirewitness.reports.base.formats.message_view import view_message

    try:
        view = view_message(index, row, payload=payload)
    except BytesGone as error:
        raise CallerError(f"{error}; the capture changed since it was indexed, try --no-index") from error
    if view.tree.own_fault:
        faults.append(f"{row.message_id().text()}: {view.tree.error}")
    if names is None:
        return view
    from wirewitness.analyser.capture.workloads.workload import identity_words

    found = (names.at(address, row.ts_ns)[0] for address, _ in (row.flow.client, row.flow.server))
    client, server = ("" if one is None else identity_words(one) for one in found)
    return view._replace(client=client, server=server)
