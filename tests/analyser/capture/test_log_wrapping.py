"""Request logs as operators, images and runtimes write them: each layout gives the lines that Kafka's own one gives."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.analyser.capture.test_request_log import START_NS, codes, read
from tests.support.request_log import LOGGER, START_MS, header, heartbeat, line
from wirewitness.analyser.analysis.evidence.logged import line_of
from wirewitness.analyser.analysis.evidence.rows import MessageRow
from wirewitness.analyser.capture import CaptureError, open_captures
from wirewitness.analyser.capture.encodings import AsUtf8
from wirewitness.analyser.capture.request_log import LogLine
from wirewitness.dissectors.core.model import packet_of

MS = 1_000_000
# What a runtime takes for one line at most; small here.
PART = 300
SAID = [heartbeat(requestHeader=header(12, 4, number, "HEARTBEAT", 'a "quoted" \\ ümlaut')) for number in range(5)]
MESSAGES = [f"Completed request:{json.dumps(said, separators=(',', ':'))}" for said in SAID]


def at(number: int, form: str) -> str:
    return datetime.fromtimestamp((START_MS + number) / 1000, UTC).strftime(form)


def iso(number: int) -> str:
    """As a runtime writes it, in ns."""
    return at(number, "%Y-%m-%dT%H:%M:%S.") + f"{(START_MS + number) % 1000:03}000000Z"


def plain(number: int, form: str = "[{}] DEBUG {} ({})") -> str:
    time = at(number, "%Y-%m-%d %H:%M:%S,") + f"{(START_MS + number) % 1000:03}"
    return form.format(time, MESSAGES[number], LOGGER) + "\n"


def dumped(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"


def json_layout(number: int) -> str:
    """log4j2's <JsonLayout compact="true" eventEol="true"/>."""
    seconds, ms = divmod(START_MS + number, 1000)
    return dumped(
        {
            "instant": {"epochSecond": seconds, "nanoOfSecond": ms * MS},
            "thread": "data-plane-kafka-request-handler-3",
            "level": "DEBUG",
            "loggerName": LOGGER,
            "message": MESSAGES[number],
            "endOfBatch": False,
            "loggerFqcn": "org.apache.logging.slf4j.Log4jLogger",
            "threadId": 61,
            "threadPriority": 5,
        }
    )


def json_layout_before_2_11(number: int) -> str:
    return dumped({"timeMillis": START_MS + number, "level": "DEBUG", "message": MESSAGES[number]})


def ecs(number: int) -> str:
    """JsonTemplateLayout with EcsLayout.json."""
    return dumped(
        {
            "@timestamp": at(number, "%Y-%m-%dT%H:%M:%S.") + f"{(START_MS + number) % 1000:03}Z",
            "ecs.version": "1.2.0",
            "log.level": "DEBUG",
            "message": MESSAGES[number],
            "process.thread.name": "data-plane-kafka-network-thread-1",
            "log.logger": LOGGER,
        }
    )


def gelf(number: int) -> str:
    seconds, ms = divmod(START_MS + number, 1000)
    text = dumped({"version": "1.1", "host": "kafka-0", "short_message": MESSAGES[number], "timestamp": 0, "level": 7})
    return text.replace('"timestamp":0', f'"timestamp":{seconds}.{ms:03}')


def docker(text: str, number: int) -> str:
    """Docker's json-file of one line of a program: parts, of which the last one has the line feed."""
    parts = [text[begin : begin + PART] for begin in range(0, len(text), PART)]
    return "".join(dumped({"log": part, "stream": "stdout", "time": iso(number)}) for part in parts)


def cri(text: str, number: int, stream: str = "stdout") -> str:
    """CRI's log (containerd, CRI-O) of one line of a program: P for parts, F for the last one."""
    parts = [text[begin : begin + PART] for begin in range(0, len(text) - 1, PART)]
    kinds = ["P"] * (len(parts) - 1) + ["F"]
    return "".join(
        f"{iso(number)} {stream} {kind} {part.rstrip(chr(10))}\n" for kind, part in zip(kinds, parts, strict=True)
    )


LAYOUTS: dict[str, Callable[[int], str]] = {
    "apache/kafka, bitnami, cp-kafka: [%d] %p %m (%c)%n": plain,
    "Strimzi to 0.45: %d{ISO8601} %p %m (%c) [%t]%n": lambda n: plain(n, "{} DEBUG {} ({}) [data-plane-kafka-0]"),
    "Confluent for Kubernetes: [%p] %d [%t] %c %M - %m%n": lambda n: plain(n, "[DEBUG] {} [net-1] c log - {}").replace(
        "c log", f"{LOGGER} log"
    ),
    "log4j2 JsonLayout": json_layout,
    "log4j2 JsonLayout before 2.11": json_layout_before_2_11,
    "log4j2 JsonTemplateLayout, ECS": ecs,
    "log4j2 JsonTemplateLayout, logstash": lambda n: dumped(
        {"@version": 1, "source_host": "kafka-0", "message": MESSAGES[n], "@timestamp": iso(n)}
    ),
    "log4j2 JsonTemplateLayout, GCP": lambda n: dumped(
        {"timestamp": iso(n), "severity": "DEBUG", "message": MESSAGES[n]}
    ),
    "GELF": gelf,
    "json-file": lambda n: docker(plain(n), n),
    "json-file of JsonLayout": lambda n: docker(json_layout(n), n),
    "CRI": lambda n: cri(plain(n), n),
    "CRI of JsonLayout": lambda n: cri(json_layout(n), n),
    "kubectl logs --timestamps": lambda n: f"{iso(n)} {plain(n)}",
    "fluent-bit": lambda n: dumped({"date": (START_MS + n) / 1000, "log": plain(n), "stream": "stdout"}),
}


def told(lines: Iterable[LogLine]) -> list[Any]:
    """What each line tells, read as the JSON that it is."""
    return [json.JSONDecoder().raw_decode(one.text.decode())[0] for one in lines]


@pytest.mark.parametrize("block_bytes", [512, 1 << 16])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout_gives_the_same_lines(layout: Callable[[int], str], block_bytes: int) -> None:
    pieces = [layout(number) for number in range(5)]
    found, stats = read("".join(pieces), block_bytes)
    assert told(found) == SAID
    assert [one.ts_ns for one in found] == [START_NS + number * MS for number in range(5)]
    starts = [1 + sum(piece.count("\n") for piece in pieces[:number]) for number in range(5)]
    assert [one.number for one in found] == starts
    assert codes(stats) == {}


def test_strimzi_since_0_46_has_whole_seconds() -> None:
    """%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c{1}:%L - %m%n"""
    pieces = [f"{at(n, '%Y-%m-%d %H:%M:%S')} DEBUG [net-1] logger:278 - {MESSAGES[n]}\n" for n in range(5)]
    found, stats = read("".join(pieces))
    assert told(found) == SAID
    assert set(codes(stats)) == {"log_seconds"}


def test_a_line_of_another_stream_between_two_parts_is_no_part() -> None:
    parts = cri(plain(0), 0).splitlines(keepends=True)
    between = cri("warning: something of the JVM\n", 0, "stderr")
    found, stats = read(between.join(parts) + cri(plain(1), 1))
    assert told(found) == SAID[:2]
    assert codes(stats) == {}


@pytest.mark.parametrize("wrap", [docker, cri], ids=["json-file", "CRI"])
@pytest.mark.parametrize("block_bytes", [512, 1 << 16])
def test_a_line_whose_last_part_is_missing_takes_nothing_of_the_next(
    wrap: Callable[[str, int], str], block_bytes: int
) -> None:
    parts = wrap(plain(0), 0).splitlines(keepends=True)
    found, _ = read("".join(parts[:-1]) + wrap(plain(1), 1), block_bytes)
    assert told(found[-1:]) == SAID[1:2]
    assert found[-1].number == len(parts)
    with pytest.raises(ValueError, match=r"Unterminated|Expecting|Invalid"):
        told(found[:-1] or [LogLine(1, 0, b"{")])


@pytest.mark.parametrize("block_bytes", [512, 1 << 16])
def test_parts_of_a_line_that_is_too_long_are_passed_over(block_bytes: int) -> None:
    long = cri(line(heartbeat(principal="x" * 20_000)), 0)
    found, stats = read(cri(plain(0), 0) + long + cri(plain(1), 1), block_bytes, max_line=3000)
    assert told(found) == SAID[:2]
    assert codes(stats)["log_long"].startswith("1 line")


def test_json_over_several_lines_is_refused_for_what_it_is() -> None:
    spread = "".join(json.dumps(json.loads(json_layout(number)), indent=2) + ",\n" for number in range(3))
    found, stats = read(spread + plain(0))
    assert told(found) == SAID[:1]
    assert codes(stats)["log_spread"].startswith("3 lines of JSON that is spread over several lines")


def test_a_cut_object_is_refused_for_what_it_is() -> None:
    found, stats = read(json_layout(0)[:400] + "\n" + json_layout(1))
    assert told(found) == SAID[1:2]
    assert codes(stats)["log_wrapped"].startswith("1 line of JSON in JSON that cannot be read")


@pytest.mark.parametrize("time", [1e300, -1, True, None, "soon", {"epochSecond": 10**30, "nanoOfSecond": 1}, [1]])
def test_a_time_that_is_none(time: Any) -> None:
    wrapped = dumped({"timestamp": time, "message": MESSAGES[0]})
    found, stats = read(plain(1) + wrapped)
    assert [one.ts_ns for one in found] == [START_NS + MS] * 2
    assert set(codes(stats)) == {"log_time"}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("block_bytes", [1 << 10, 1 << 16])
def test_a_log_that_powershell_wrote(encoding: str, block_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "kafka.log"
    path.write_bytes("".join(plain(number) for number in range(5)).replace("\n", "\r\n").encode(encoding))
    [source] = open_captures([path])
    assert (source.is_log, source.first_ns) == (True, START_NS)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 16])
def test_utf_16_comes_out_as_utf_8_whatever_is_asked_for(size: int) -> None:
    text = "ä€😀 plain\n" * 50
    stream = AsUtf8(io.BytesIO(text.encode("utf-16")), "utf-16-le")
    target, got = bytearray(size), b""
    while count := stream.readinto(target):
        got += bytes(target[:count])
    assert got.decode() == text


def test_utf_16_that_is_no_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes("nothing of Kafka in here, only a note".encode("utf-16"))
    with pytest.raises(CaptureError, match="it starts with the text 'nothing of Kafka"):
        open_captures([path])


def test_a_line_in_parts_is_found_again_for_its_evidence(tmp_path: Path) -> None:
    path = tmp_path / "kafka.log"
    path.write_text("".join(cri(plain(number), number) for number in range(5)))
    [source] = open_captures([path])
    third = [one.number for one in read(path.read_bytes())[0]][2]
    names = dict.fromkeys(MessageRow.__annotations__)
    row = MessageRow(**{**names, "packet_last": packet_of(0, third)})  # type: ignore[arg-type]
    assert json.JSONDecoder().raw_decode(line_of(row, [source]).decode())[0] == SAID[2]
