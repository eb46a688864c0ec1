"""What tshark says of the Kafka messages in a capture.

In: a capture and the server's port. Out: one `KafkaPacket` for each packet in which at least one message ends. tshark
prints one line per packet and joins the values of several messages, so a value that only some messages of a packet have
cannot be told apart from the others; such values are tuples of their own length.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

FIELDS = (
    "frame.number",
    "tcp.stream",
    "tcp.srcport",
    "tcp.dstport",
    "kafka.len",
    "kafka.correlation_id",
    "kafka.request_key",
    "kafka.response_key",
    "kafka.api_version",
    "kafka.response.version",
    "kafka.request_frame",
    "kafka.request_missing",
    "_ws.malformed",
    "_ws.expert.message",
)
SEPARATOR = "|"


class KafkaPacket(NamedTuple):
    """One packet: number, tcp.stream and ports; then per message in order of the stream.

    sizes, correlation_ids: of every message; a size is without its own 4 bytes. api_keys, versions: of every request,
    and of the responses whose request tshark knows. request_packets: where these requests are. requests_missing: number
    of the other responses. malformed: tshark gave up inside a message. remarks: its expert infos.
    """

    number: int
    stream: int
    from_port: int
    to_port: int
    sizes: tuple[int, ...]
    correlation_ids: tuple[int, ...]
    api_keys: tuple[int, ...]
    versions: tuple[int, ...]
    request_packets: tuple[int, ...]
    requests_missing: int
    malformed: bool
    remarks: tuple[str, ...]

    def client_port(self, server_port: int) -> int:
        """The port that is not the server's."""
        return self.from_port if self.to_port == server_port else self.to_port


def kafka_packets(tshark: str, capture: Path, port: int) -> list[KafkaPacket]:
    """All packets of a capture in which a Kafka message ends. Raises CalledProcessError when tshark fails."""
    command = [tshark, "-n", "-r", str(capture), "-d", f"tcp.port=={port},kafka", "-Y", "kafka", "-T", "fields"]
    for preference in ("tcp.reassemble_out_of_order:TRUE", "tcp.check_checksum:FALSE"):
        command += ["-o", preference]
    command += ["-E", f"aggregator={SEPARATOR}"]
    for name in FIELDS:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [_packet(line.split("\t")) for line in done.stdout.splitlines()]


def _packet(columns: list[str]) -> KafkaPacket:
    columns += [""] * (len(FIELDS) - len(columns))
    number, stream, source, target, sizes, ids, asked, answered, versions, known, requests, missing, bad, notes = (
        columns
    )
    return KafkaPacket(
        int(number),
        int(stream),
        int(source),
        int(target),
        _numbers(sizes),
        _numbers(ids),
        _numbers(asked) or _numbers(answered),
        _numbers(versions) or _numbers(known),
        _numbers(requests),
        len(missing.split(SEPARATOR)) if missing else 0,
        bool(bad),
        tuple(notes.split(SEPARATOR)) if notes else (),
    )


def _numbers(joined: str) -> tuple[int, ...]:
    return tuple(int(value) for value in joined.split(SEPARATOR)) if joined else ()
