"""`wirewitness extract`: the packets that prove something. In: captures and an id; out: a pcapng or pcap file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from wirewitness.app.cli.extract_bundle import Asked, fill_bundle, new_bundle
from wirewitness.app.cli.locating import open_located
from wirewitness.app.cli.output import check_output, whole_file
from wirewitness.app.shared.failure import CallerError, Status, say
from wirewitness.app.shared.options import locating_options
from wirewitness.app.shared.reading import complain_of_faults

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.analyser.analysis.evidence.choose import Choice
    from wirewitness.analyser.analysis.evidence.index import Index
    from wirewitness.analyser.analysis.evidence.rows import MessageRow


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--finding", metavar="ID", multiple=True, help="The evidence of a finding. Repeatable.")
@click.option("--flow", metavar="ID", multiple=True, help="All packets of a connection. Repeatable.")
@click.option("--message", metavar="ID", multiple=True, help="The packets of a message. Repeatable.")
@click.option("--exchange", metavar="ID", multiple=True, help="The packets of a request and its response. Repeatable.")
@click.option("--output", "-o", required=True, metavar="FILE", help="pcapng; pcap when the name ends in .pcap.")
@click.option(
    "--redact",
    is_flag=True,
    help="Overwrite credentials, and all that is not decoded but TLS. Data of applications in decoded messages stays.",
)
@click.option("--with-secrets", is_flag=True, help="Also write the TLS secrets of these connections, of no other.")
@click.option("--decrypted", is_flag=True, help="Write TLS connections in clear text, as far as there are keys.")
@click.option(
    "--bundle",
    metavar="FOLDER",
    help="Also write the table rows, of a finding its report too, to this new folder or .zip file.",
)
@locating_options
def extract(
    *,
    captures: tuple[str, ...],
    finding: tuple[str, ...],
    flow: tuple[str, ...],
    message: tuple[str, ...],
    exchange: tuple[str, ...],
    output: str,
    redact: bool,
    with_secrets: bool,
    decrypted: bool,
    bundle: str | None,
    **locating: Any,
) -> Status:
    """Write evidence packets of CAPTURE... to a capture that Wireshark opens, with the handshakes of their connections.

    Packets are raw: what applications sent is in them, and so are credentials unless --redact is given. It overwrites
    credentials in decoded messages and, since anything may stand there, all that is not decoded: connections of
    other protocols, bytes around messages, the content of messages that could not be read. TLS stays as it is. Times,
    link types and original lengths stay; TCP checksums of overwritten packets are wrong.

    TLS stays encrypted, and its secrets stay where they are: with --with-secrets those that open these connections are
    written into the pcapng (a decryption-secrets block), so that it is a credential. With --decrypted packets of TLS
    are written as the same packets in clear text, with new lengths and sequence numbers, and nobody needs a key.

    \b
    Examples:
      wirewitness extract incident.pcapng --finding 5b1f0c2a77e1d3aa -o evidence.pcapng
      wirewitness extract captures/ --flow 3f6c1e0a9b2d4c58 -o flow.pcapng --redact
      wirewitness extract captures/ --flow 3f6c1e0a9b2d4c58 --flow 91d20b7756af3e08 -o both.pcapng
    """  # fmt: skip
    asked = _asked({"finding": finding, "flow": flow, "message": message, "exchange": exchange})
    if sum((redact, with_secrets, decrypted)) > 1:
        raise click.UsageError("--redact, --with-secrets and --decrypted do not go together")
    _check_outputs(captures, output, bundle, with_secrets=with_secrets)
    quiet, reading = locating["quiet"], dict(locating)
    with open_located(captures, locating) as (index, some_missing):
        if all(source.other_kind for source in index.sources):
            first = index.sources[0]
            raise CallerError(f"{first.name} is {first.other_kind}, which has no packets to extract")
        analysis = _analysis(index, reading) if finding or bundle is not None else None
        try:
            choice, found = _choice(index, asked, analysis, redact=redact)
            secrets = _prepared(index, choice, with_secrets=with_secrets, decrypted=decrypted)
            count = _write(index, choice, output, secrets)
            if bundle is not None and analysis is not None:
                with new_bundle(Path(bundle)) as folder:
                    fill_bundle(folder, analysis, asked, found)
        finally:
            if analysis is not None:
                analysis.close()
    if not quiet:
        _tell(count, choice, output, redact=redact)
        _tell_lines(index, found)
    from wirewitness.analyser.base.faults import counted

    faults = [counted(text, times) for text, times in choice.faults.items()]
    complain_of_faults(faults)
    if faults:
        return Status.OWN_FAULT
    return Status.SOME_INPUT_UNREAD if some_missing else Status.DONE


def _asked(kinds: Mapping[str, Sequence[str]]) -> list[Asked]:
    """What evidence is of, each once."""
    asked = [*dict.fromkeys(Asked(kind, wanted) for kind, ids in kinds.items() for wanted in ids)]
    if not asked:
        raise click.UsageError("--finding, --flow, --message or --exchange is needed, with an id")
    return asked


def _check_outputs(captures: tuple[str, ...], output: str, bundle: str | None, *, with_secrets: bool) -> None:
    if output == "-":
        raise CallerError("--output -: evidence goes to a file, as standard output carries what people read; name one")
    if with_secrets and output.lower().endswith(".pcap"):
        raise CallerError(f"{output}: pcap has no room for secrets; name it .pcapng")
    check_output(output, captures)
    if bundle is not None:
        if Path(bundle).exists():
            raise CallerError(f"--bundle {bundle}: that is there already")
        check_output(bundle, captures, "--bundle")


def _analysis(index: Index, reading: dict[str, Any]) -> Analysis:
    from wirewitness.analyser import read
    from wirewitness.app.shared.options import read_options

    given = {name: value for name, value in reading.items() if name not in ("quiet", "debug", "no_index")}
    options = read_options(**given, protocol=(), from_ns=None, to_ns=None)
    return read(index.inputs, options=options)


def _choice(
    index: Index, asked: Sequence[Asked], analysis: Analysis | None, *, redact: bool
) -> tuple[Choice, list[MessageRow]]:
    from wirewitness.analyser.analysis.evidence.bytes import BytesGone
    from wirewitness.analyser.analysis.evidence.choose import Choice
    from wirewitness.analyser.analysis.evidence.gather import add_hidden

    choice, rows = Choice(), list[Any]()
    for one in asked:
        rows += _add(choice, index, one, analysis)
    if redact:
        with _capture_unchanged(BytesGone):
            add_hidden(choice, index)
    return choice, rows


def _add(choice: Choice, index: Index, asked: Asked, analysis: Analysis | None) -> list[MessageRow]:
    """Add packets; the messages that they are of, but for a whole connection."""
    from wirewitness.analyser.analysis.evidence.bytes import BytesGone
    from wirewitness.analyser.analysis.evidence.gather import add_evidence, add_message, parted
    from wirewitness.analyser.analysis.evidence.rows import UnknownId, parse_message_id

    rows, before = list[Any](), len(choice.packets)
    try:
        if asked.kind == "flow":
            flow = index.flow(asked.wanted)
            _check_packets(index, asked.kind, flow.key)
            choice.add_flow(flow, index.end_of(flow))
        elif asked.kind == "finding" and analysis is not None:
            rows = add_evidence(choice, index, asked.wanted, _evidence(analysis, asked.wanted))
        else:
            row = index.message(parse_message_id(asked.wanted))
            partner = index.partner(row) if asked.kind == "exchange" else None
            rows = [row, *([partner] if partner is not None else [])]
    except UnknownId as error:
        raise CallerError(str(error)) from error
    of_packets, of_lines = parted(rows, index)
    if of_lines and not of_packets and len(choice.packets) == before:
        _check_packets(index, asked.kind, of_lines[0].packet_last)
    with _capture_unchanged(BytesGone):
        for row in of_packets:
            add_message(choice, index, row)
    return rows


@contextmanager
def _capture_unchanged(gone: type[Exception]) -> Iterator[None]:
    try:
        yield
    except gone as error:
        raise CallerError(f"{error}; the capture changed since it was indexed, try --no-index") from error


def _check_packets(index: Index, kind: str, place: int) -> None:
    """CallerError where what was asked for lies in a request log. place: file and number in one."""
    from wirewitness.dissectors.core.model import split_packet

    source = index.sources[split_packet(place)[0]]
    if source.is_log:
        raise CallerError(
            f"this {kind} is known by {source.name} alone, a request log, which has no packets to extract; "
            "`wirewitness show` has its lines"
        )


def _evidence(analysis: Analysis, finding: str) -> list[dict[str, Any]]:
    rows = analysis.arrow("findings").select(["finding_id", "evidence"]).to_pylist()
    for row in rows:
        if row["finding_id"] == finding:
            found = _items(row["evidence"])
            if found is None:
                raise CallerError(f"the evidence of finding {finding!r} is damaged")
            return found
    hint = "`wirewitness table findings CAPTURE --columns finding_id,code` lists them"
    raise CallerError(f"no finding {finding!r}; {hint}")


def _items(text: str | None) -> list[dict[str, Any]] | None:
    """The packets of a finding; None for text that no rule wrote, in a dataset of somebody else."""
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        return None
    kinds = {"file": str, "packet": int, "message_id": str}
    right = all(isinstance(one.get(name), kind | None) for one in found for name, kind in kinds.items())
    return found if right else None


def _prepared(index: Index, choice: Choice, *, with_secrets: bool, decrypted: bool) -> bytes:
    """The secrets to write; says what cannot be opened."""
    from wirewitness.analyser.analysis.evidence.gather import add_beginnings, add_clear

    if decrypted and (left := add_clear(choice, index)):
        say(f"connections that stay encrypted, for want of a key: {left}")
    if not with_secrets:
        return b""
    from wirewitness.analyser.analysis.evidence.hiding import secret_lines

    flows = add_beginnings(choice)
    lines, known = secret_lines(index, flows)
    say(f"secrets of {known} of {len(flows)} connections that speak TLS are written: whoever has the file reads them")
    return lines


def _write(index: Index, choice: Choice, output: str, secrets: bytes) -> int:
    from wirewitness.analyser.analysis.evidence.choose import chosen_packets

    with whole_file(output) as file:
        return sum(1 for _ in _written(chosen_packets(choice, index.sources, index.places), file, output, secrets))


def _written(packets: Any, file: BinaryIO, output: str, secrets: bytes) -> Any:
    """Each packet once it is written."""
    from wirewitness.analyser.analysis.evidence.write import PcapngWriter, PcapWriter

    if not output.lower().endswith(".pcap"):
        writer = PcapngWriter(file, "raw packets chosen by wirewitness: evidence, not a whole capture")
        if secrets:
            writer.secrets(secrets)
        for packet in packets:
            writer.write(packet)
            yield packet
        return
    plain: PcapWriter | None = None
    link_type = 1
    for packet in packets:
        if plain is None:
            link_type = packet.link_type
            plain = PcapWriter(file, link_type)
        if packet.link_type != link_type:
            raise CallerError(f"{output}: pcap has room for one link type and the packets have more; name it .pcapng")
        plain.write(packet)
        yield packet
    if plain is None:
        PcapWriter(file, link_type)


def _tell(count: int, choice: Choice, output: str, *, redact: bool) -> None:
    raw = (
        "credentials and what was not decoded are overwritten"
        if redact
        else "credentials too; --redact overwrites those"
    )
    say(f"{count} raw packets written to {output}; data of applications is in them, {raw}")
    if redact:
        checksums = "; their TCP checksums are wrong now" if choice.overwritten else ""
        say(f"{choice.overwritten} packets held credentials or what was not decoded{checksums}")
        if encrypted := sum(one.flow.encrypted for one in choice.flows.values()):
            say(f"connections that speak TLS stay as they are: {encrypted}")
    if choice.left_out:
        say(f"{choice.left_out} packets in IP fragments, or of no chosen connection, are left out")
    sys.stderr.flush()


def _tell_lines(index: Index, rows: Sequence[MessageRow]) -> None:
    """Which lines of request logs prove the same, and are in no packet."""
    from wirewitness.analyser.analysis.evidence.gather import parted
    from wirewitness.analyser.base.words import count
    from wirewitness.dissectors.core.model import split_packet

    lines = sorted({split_packet(row.packet_last) for row in parted(rows, index)[1]})
    for file in dict.fromkeys(file for file, _ in lines):
        numbers = [str(number) for one, number in lines if one == file]
        name = index.sources[file].name
        say(f"left out {count(len(numbers), 'line')} of {name}, which have no packets: {', '.join(numbers)}")
