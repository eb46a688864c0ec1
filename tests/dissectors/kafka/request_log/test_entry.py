"""Lines of JSON to entries, and what becomes of those that cannot be read."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.request_log import header, heartbeat
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.log_reader import LogError
from wirewitness.dissectors.kafka.request_log.entry import ends, entry


def as_bytes(said: dict[str, Any]) -> bytes:
    return json.dumps(said).encode()


def test_an_entry_has_what_the_line_says() -> None:
    found = entry(as_bytes(heartbeat()) + b" (kafka.request.logger)")
    assert (found.api_key, found.version, found.correlation_id, found.client_id) == (12, 4, 7, "app")
    assert (found.client, found.server) == (("10.0.0.11", 40000), ("10.0.0.2", 9092))
    assert found.duration_ns == 1_250_000
    assert found.times.remote == 0.25
    assert (found.principal, found.listener, found.security_protocol) == ("User:billing", "CLIENTS", "SASL_SSL")
    assert (found.software_name, found.software_version) == ("apache-kafka-java", "3.9.0")
    assert (found.forwarded, found.odd) == (False, ())


@pytest.mark.parametrize("response", ["", None], ids=["empty text", "null"])
def test_an_unanswered_request_has_no_response(response: str | None) -> None:
    assert entry(as_bytes(heartbeat(response=response))).response is None


def test_what_the_client_did_not_say_is_null() -> None:
    found = entry(as_bytes(heartbeat(clientInformation={"softwareName": "unknown", "softwareVersion": "unknown"})))
    assert (found.software_name, found.software_version) == (None, None)


@pytest.mark.parametrize(
    ("connection", "client", "server"),
    [
        pytest.param("10.0.0.2:9092-10.0.0.11:40000-1-7", ("10.0.0.11", 40000), ("10.0.0.2", 9092), id="processor"),
        pytest.param("10.0.0.2:9092-10.0.0.11:40000-7", ("10.0.0.11", 40000), ("10.0.0.2", 9092), id="index alone"),
        pytest.param(
            "0:0:0:0:0:0:0:1:9092-fe80:0:0:0:1:2:3:4%eth0:51234-0-1", ("fe80::1:2:3:4", 51234), ("::1", 9092), id="IPv6"
        ),
    ],
)
def test_the_ends_of_a_connection(connection: str, client: tuple[str, int], server: tuple[str, int]) -> None:
    assert ends(connection) == (client, server)


@pytest.mark.parametrize("connection", ["", "a:1-b:2-0", "10.0.0.2:9092", "10.0.0.2:9092-10.0.0.1:99999-0", "x" * 999])
def test_what_is_no_connection(connection: str) -> None:
    with pytest.raises(DecodeError):
        ends(connection)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(as_bytes(heartbeat())[:100], "log_json", id="cut"),
        pytest.param(b"{]", "log_json", id="no JSON"),
        pytest.param(b'{"a":' * 100_000, "log_depth", id="nested objects"),
        pytest.param(b'{"a":' + b"[" * 100_000, "log_depth", id="nested arrays"),
        pytest.param(as_bytes(heartbeat(totalTimeMs=float("nan"))), "log_number", id="NaN"),
        pytest.param(as_bytes(heartbeat(connection=None)), "log_header", id="no connection"),
        pytest.param(as_bytes(heartbeat(requestHeader=[])), "log_header", id="no header"),
        pytest.param(as_bytes(heartbeat(requestHeader=header(1 << 40, 0, 0, "X"))), "log_header", id="wide key"),
        pytest.param(b"{}", "log_header", id="empty"),
    ],
)
def test_a_line_that_says_nothing(text: bytes, code: str) -> None:
    with pytest.raises(LogError) as raised:
        entry(text)
    assert raised.value.code == code


def test_of_a_name_that_stands_twice_the_last_one_counts() -> None:
    found = entry(b'{"totalTimeMs":9,' + as_bytes(heartbeat())[1:])
    assert (found.times.total, found.odd) == (1.25, ("log_twice",))


@pytest.mark.parametrize("total", [-1, 1e300, 10**400, -(10**400), "1", None, True, [1]], ids=lambda one: str(one)[:9])
def test_times_that_are_none(total: object) -> None:
    found = entry(as_bytes(heartbeat(totalTimeMs=total, localTimeMs=total)))
    assert (found.duration_ns, found.times.total, found.times.local) == (0, None, None)


def test_a_number_beyond_what_is_read_of_json_leaves_its_line_out() -> None:
    with pytest.raises(LogError) as raised:
        entry(as_bytes(heartbeat(totalTimeMs="@")).replace(b'"@"', b"9" * 5000))
    assert raised.value.code == "log_json"


def test_numbers_of_infinite_size_are_none() -> None:
    assert entry(as_bytes(heartbeat(totalTimeMs="@")).replace(b'"@"', b"1e999")).times.total is None


@given(st.binary(max_size=200), st.integers(0, 700), st.binary(max_size=4))
def test_any_bytes_give_an_entry_or_a_log_error(behind: bytes, cut: int, changed: bytes) -> None:
    text = as_bytes(heartbeat())
    with suppress(LogError):
        entry(text[:cut] + changed + text[cut + len(changed) :] + behind)
