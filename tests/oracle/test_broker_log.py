"""The broker's own request log and our decode of the same run say the same, exchange by exchange and field by field.

The broker prints requests and responses as JSON made from its own message classes. What it cannot say exactly: record
batches are shown as sizes; a tagged field with its default value is left out; the body of an ApiVersions request of a
version that the broker does not know is shown empty. Requests of clients that left before the answer may be missing,
and what a client says before it has authenticated itself is not logged. We mask secrets, the broker prints them.
"""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.lab import broker_log
from tests.support.recorder import Recorded, Recording, record
from wirewitness.dissectors.kafka.headers import UNSUPPORTED_VERSION, decode_response, request_header, response_header
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS
from wirewitness.dissectors.kafka.schema.compile import decoder
from wirewitness.dissectors.kafka.schema.definitions import Direction, Field

# Too short for the amounts asked for here, since a broker does not log authentication: see test_sasl_sample.py.
SHORT = "kafka_sasl.jsonl.gz"
LOGS = sorted(path for path in (SAMPLES / "broker_logs").glob("kafka_*.jsonl.gz") if path.name != SHORT)
UUID_TEXT = 22  # base64 of 16 bytes without padding; as plain bytes they would have 24 characters
SIZES = {"recordsSizeInBytes": "records"}
# Definitions newer than the broker have another name for the same field.
RENAMED_SINCE = {
    "TxnOffsetCommit": {"generationId": "generationIdOrMemberEpoch"},
    "StreamsGroupHeartbeat": {"acceptableRecoveryLag": "acceptableRecoveryLagLegacy"},
}
ENVELOPE = 58
NOT_LEADING = (6, 41)  # what the controller that was says of a request in an Envelope; it sends no answer to it
BROKERS_STOP = ("kafka_cluster.", "kafka_share_streams.")  # samples in which they do
BEFORE_LOGIN = {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}


@dataclass
class Agreement:
    """What a comparison found. Fields are counted where both sides had a value to compare, leaves only."""

    exchanges: int = 0
    fields: int = 0
    header_only: Counter[str] = field(default_factory=Counter)
    absent_tags: Counter[str] = field(default_factory=Counter)  # tagged fields on neither side
    unknown_versions: int = 0  # ApiVersions requests that the broker could not read
    masked: int = 0  # secrets, which we do not show
    forwarded: int = 0  # exchanges that an Envelope holds; the log has them in its place
    before_login: int = 0  # exchanges of a connection until the client is authenticated
    apis: Counter[tuple[str, int]] = field(default_factory=Counter)
    unanswered: list[Recorded] = field(default_factory=list)  # requests that the log does not hold
    unread_answers: list[Recorded] = field(default_factory=list)  # in the log, but not or not wholly in the capture
    differences: list[str] = field(default_factory=list)

    def differ(self, path: str, logged: Any, ours: Any) -> None:
        self.differences.append(f"{path}: the broker logged {logged!r}, decoded {ours!r}")

    def __str__(self) -> str:
        return (
            f"{self.exchanges} exchanges, {self.fields} fields, {len(self.apis)} APIs and versions; "
            f"header only {dict(self.header_only)}; never answered {len(self.unanswered)}; "
            f"answer not wholly in the capture {len(self.unread_answers)}; unknown versions {self.unknown_versions}; "
            f"masked {self.masked}; before login {self.before_login}; "
            f"forwarded {self.forwarded}"
        )


def compare(log: Iterable[broker_log.LogRecord], recorded: Iterable[Recorded]) -> Agreement:
    """Match both sides by connection, correlation id, API and version, then compare headers and bodies."""
    found = Agreement()
    waiting: dict[tuple[Any, ...], list[Recorded]] = defaultdict(list)
    recorded = [unwrapped(one) for one in recorded]
    authenticated = {one.flow for one in recorded if one.row["operation"] == "SaslHandshake"}
    for one in recorded:
        row = one.row
        waiting[one.client, one.server, one.correlation_id, row["operation"], row["version"]].append(one)
    for entry in log:
        name = API_KEYS[entry.api_key].name
        key = (tuple(entry.client), tuple(entry.server), entry.correlation_id, name, str(entry.version))
        if not waiting[key]:
            found.differences.append(f"{key}: in the log only")
            continue
        compare_exchange(entry, waiting[key].pop(0), found)
    for left in waiting.values():
        for one in left:
            if one.flow in authenticated and one.row["operation"] in BEFORE_LOGIN:
                found.before_login += 1
            elif one.row["status"] == "unanswered":
                found.unanswered.append(one)
            else:
                found.differences.append(f"{one.client} {one.correlation_id} {one.row}: not in the log")
    return found


def unwrapped(one: Recorded) -> Recorded:
    """What an Envelope holds, as if it had been sent by itself; any other exchange as it is."""
    frame, answer = one.frames
    if one.api_key != ENVELOPE or one.request is None or one.response is None or answer is None:
        return one
    start, size = one.request["request_data"]
    key, version, correlation_id, client_id, body = request_header(frame, start, start + size)
    decode = decoder(key, version, "request")
    assert decode is not None
    request, response = decode(frame, body, start + size)[0], None
    if one.response["response_data"] is not None:  # null where this is not the controller any more
        at, length = one.response["response_data"]
        body = response_header(key, version, answer, at, at + length)[1]
        decoded = decode_response(key, version, answer, body, at + length)
        assert decoded is not None
        response = decoded[0]
    row = {**one.row, "operation": API_KEYS[key].name, "version": str(version), "client_id": client_id}
    return one._replace(api_key=key, correlation_id=correlation_id, row=row, request=request, response=response)


def compare_exchange(entry: broker_log.LogRecord, one: Recorded, found: Agreement) -> None:
    """One log line and our exchange of the same key."""
    name = API_KEYS[entry.api_key].name
    path = f"{name} v{entry.version} #{entry.correlation_id} of {entry.client_id}"
    found.exchanges += 1
    compare_value(entry.client_id, one.row["client_id"], f"{path}.client_id", None, found)
    if name.upper() != entry.api_name.replace("_", ""):
        found.differ(f"{path}.api", entry.api_name, name)
    if schema.api(entry.api_key) is None:
        found.header_only[name] += 1
        return
    found.apis[name, entry.version] += 1
    if name == "ApiVersions" and entry.response is not None and entry.response["errorCode"] == UNSUPPORTED_VERSION:
        found.unknown_versions += 1
        compare_value(entry.request, {}, f"{path}.request", None, found)
    else:
        compare_body(entry.request, one.request, "request", entry, path, found)
    if entry.response is not None and (one.row["status"] == "unanswered" or not one.whole):
        found.unread_answers.append(one)
        return
    if entry.forwarded:
        found.forwarded += 1
        if one.response is None:
            assert entry.response is not None
            if logged_status(entry.response)[1] not in NOT_LEADING:
                found.differ(path, entry.response, "not from the controller")
            return
    else:
        compare_value(logged_status(entry.response), (one.row["status"], one.row["error_code"]), path, None, found)
    if entry.response is not None:
        compare_body(entry.response, one.response, "response", entry, path, found)


def logged_status(response: dict[str, Any] | None) -> tuple[str, int | None]:
    """Status and error code that an exchange with this response has: the first error, outer ones first, else 0."""
    if response is None:
        return "one_way", None
    code = next((code for code in error_codes(response) if code), 0)
    return "error" if code else "ok", code


def error_codes(value: Any) -> Iterator[int]:
    """Every error code below a JSON value."""
    if isinstance(value, dict):
        yield from (inner for name, inner in value.items() if name.lower().endswith("errorcode"))
        for inner in value.values():
            yield from error_codes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from error_codes(inner)


def compare_body(
    logged: dict[str, Any], ours: Any, direction: Direction, entry: broker_log.LogRecord, path: str, found: Agreement
) -> None:
    """A whole request or response."""
    api = schema.api(entry.api_key)
    assert api is not None
    renamed = RENAMED_SINCE.get(api.name, {})
    logged = {renamed.get(name, name): value for name, value in logged.items()}
    compare_struct(logged, ours, f"{path}.{direction}", api.fields(direction), found)


def compare_struct(logged: Any, ours: Any, path: str, fields: tuple[Field, ...], found: Agreement) -> None:
    """A JSON object and our dict: the same names, and below them the same values."""
    if not isinstance(logged, dict) or not isinstance(ours, dict):
        found.differ(path, logged, ours)
        return
    known = {one.name: one for one in fields}
    named = {snake_case(SIZES.get(name, str(name))): (name in SIZES, value) for name, value in logged.items()}
    for name, (is_size, value) in named.items():
        if name not in ours:
            found.differ(f"{path}.{name}", value, "no such field")
        elif known[name].type == "records" and not is_size:  # an empty text stands for them, without a size
            compare_value(value, "", f"{path}.{name}", None, found)
        elif known[name].secret:
            found.masked += value is not None
            shown = None if value is None else schema.MASKED[known[name].type]
            compare_value(shown, ours[name], f"{path}.{name}", None, found)
        elif is_size:
            span = ours[name]
            compare_value(value, None if span is None else span[1], f"{path}.{name}", None, found)
        else:
            compare_value(value, ours[name], f"{path}.{name}", known[name], found)
    for name in ours.keys() - named.keys():
        if known[name].tag is not None and ours[name] is None:
            found.absent_tags[name] += 1
        else:
            found.differ(f"{path}.{name}", "no such field", ours[name])


def compare_value(logged: Any, ours: Any, path: str, one: Field | None, found: Agreement) -> None:
    """A JSON value and ours; `one` is its field where it may be a struct or an array of them."""
    if isinstance(logged, list) and isinstance(ours, list):
        if len(logged) != len(ours):
            found.differ(f"{path} length", len(logged), len(ours))
        for index, (left, right) in enumerate(zip(logged, ours, strict=False)):
            compare_value(left, right, f"{path}[{index}]", one, found)
    elif isinstance(logged, dict) and one is not None:
        compare_struct(logged, ours, path, one.fields, found)
    else:
        expected = ours
        if isinstance(ours, bytes) and isinstance(logged, str):
            expected = bytes_text(ours, len(logged))
        found.fields += 1
        if type(logged) is not type(expected) or logged != expected:
            found.differ(path, logged, ours)


def bytes_text(raw: bytes, size: int) -> str:
    """Bytes as the broker prints them; a uuid, told by the size of its text, in the alphabet for URLs."""
    if len(raw) == 16 and size == UUID_TEXT:
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")
    return base64.b64encode(raw).decode()


def snake_case(name: str) -> str:
    """committedLeaderEpoch -> committed_leader_epoch."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


# ----------------------------------------------------------------------------------------------------------------------


@cache
def recording_of(name: str) -> Recording:
    return record([SAMPLES / f"{name}.pcapng"])


def test_there_are_logs() -> None:
    assert len(LOGS) >= 3


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_sample_equals_the_broker_log(path: Path) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    log = broker_log.load(path)
    recording = recording_of(name)
    found = compare(log, recording.exchanges)
    print(f"{name}: {found}")
    assert found.differences == []
    check_amount(found, len(log))


def damage(capture: Path) -> list[dict[str, Any]]:
    """Expert infos of a capture that are more than notes."""
    with wirewitness.read(capture, tables=["expert_infos"]) as analysis:
        remarks: list[dict[str, Any]] = analysis.arrow("expert_infos").to_pylist()
    return [remark for remark in remarks if remark["severity"] not in ("chat", "note")]


def check_amount(found: Agreement, logged: int) -> None:
    """The comparison was of much, and what it could not compare is little and explained."""
    assert found.exchanges == logged > 150
    assert len(found.apis) >= 10
    assert found.fields > 20 * logged
    # A client that closes its connection leaves at most what it had in flight, at the end of its connection.
    assert len(found.unanswered) + len(found.unread_answers) <= max(1, logged // 100)
    assert set(found.header_only) <= {API_KEYS[key].name for key in API_KEYS if schema.api(key) is None}
    assert sum(found.header_only.values()) <= logged // 20


def test_a_request_without_log_line_is_the_last_of_its_connection() -> None:
    """The one class of exchanges that the log cannot hold: a client, or a broker that stops, left before the answer."""
    for path in LOGS:
        recording = recording_of(path.name.removesuffix(".jsonl.gz"))
        found = compare(broker_log.load(path), recording.exchanges)
        for one in (*found.unanswered, *found.unread_answers):
            of_flow = [other for other in recording.exchanges if other.flow == one.flow]
            answered = [other.row["request_offset"] for other in of_flow if other.response is not None and other.whole]
            assert one.row["request_offset"] > max(answered, default=-1)
            flow = recording.flows[one.flow]
            assert flow.closed_by_low is flow.client_is_low or path.name.startswith(BROKERS_STOP)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_real_traffic_gives_no_remark_about_damage(path: Path) -> None:
    """Real brokers and clients send nothing malformed: neither trailing bytes nor skipped ones."""
    assert damage(SAMPLES / f"{path.name.removesuffix('.jsonl.gz')}.pcapng") == []


# ----------------------------------------------------------------------------------------------------------------------
# The comparison itself: a changed log must not pass.

CHANGES = {
    "number": lambda entry: entry.request["topics"][0]["partitions"][0].update(committedOffset=-7),
    "text": lambda entry: entry.request.update(groupId="another"),
    "null for empty": lambda entry: entry.request["topics"][0]["partitions"][0].update(committedMetadata=None),
    "error code": lambda entry: entry.response["topics"][0]["partitions"][0].update(errorCode=22),
    "field too many": lambda entry: entry.request.update(retentionTimeMs=1),
    "field missing": lambda entry: entry.request.pop("memberId"),
    "element missing": lambda entry: entry.response["topics"].clear(),
    "bool for number": lambda entry: entry.response.update(throttleTimeMs=False),
}


@pytest.fixture(scope="module")
def commits() -> list[Recorded]:
    recording = recording_of("kafka_fenced_commit")
    return [one for one in recording.exchanges if one.api_key == 8]


def commit_log() -> list[broker_log.LogRecord]:
    log = broker_log.load(SAMPLES / "broker_logs" / "kafka_fenced_commit.jsonl.gz")
    return [entry for entry in log if entry.api_key == 8]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_log_differs(change: Any, commits: list[Recorded]) -> None:
    log = commit_log()
    assert compare(log, commits).differences == []
    change(log[3])
    assert compare(log, commits).differences


def test_missing_exchanges_differ(commits: list[Recorded]) -> None:
    log = commit_log()
    assert len(compare(log[1:], commits).differences) == 1
    assert len(compare(log, commits[1:]).differences) == 1
    assert len(compare([log[0]._replace(correlation_id=-1), *log[1:]], commits).differences) == 2
    assert len(compare([log[0]._replace(client_id="x"), *log[1:]], commits).differences) == 1
