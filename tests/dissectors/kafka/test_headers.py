"""Request and response headers of every kind, and the ApiVersions answer to a version that the broker does not know."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.headers import correlation_id, decode_response, request_header, response_header

AFTER = b"\x00\x00\x00\x00\x00\x00\x00\x00"


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        pytest.param(
            "0008 0007 0000002a 0003 617070",
            (8, 7, 42, "app", 13),
            id="version 1: key, version, correlation id, client id",
        ),
        pytest.param("0008 0007 0000002a ffff", (8, 7, 42, None, 10), id="null client id"),
        pytest.param("0008 0007 0000002a 0000", (8, 7, 42, "", 10), id="empty client id"),
        pytest.param("0008 0008 0000002a 0003 617070 00", (8, 8, 42, "app", 14), id="version 2: flexible"),
        pytest.param(
            "0008 0008 0000002a 0003 617070 02 0002cafe 0701ff",
            (8, 8, 42, "app", 21),
            id="version 2 with tagged fields 0 and 7",
        ),
        pytest.param("0008 0063 0000002a 0001 61 00", (8, 99, 42, "a", 12), id="newer version of a known key"),
        pytest.param("0061 0000 0000002a 0001 61", (97, 0, 42, "a", 11), id="unknown key: tags are not guessed"),
        pytest.param("0011 0001 0000002a 0001 61", (17, 1, 42, "a", 11), id="SaslHandshake is never flexible"),
        pytest.param("0012 0003 0000002a 0001 61 00", (18, 3, 42, "a", 12), id="ApiVersions 3 request is flexible"),
        pytest.param("0007 0000 0000002a 00000001", (7, 0, 42, None, 8), id="ControlledShutdown 0 has header 0"),
        pytest.param("0007 0001 0000002a 0001 61", (7, 1, 42, "a", 11), id="ControlledShutdown 1 has header 1"),
        pytest.param("0008 0007 80000000 0002 c3a9", (8, 7, -(2**31), "é", 12), id="client id is UTF-8"),
        pytest.param("0008 0007 0000002a 0002 61ff", (8, 7, 42, "a\\xff", 12), id="client id that is not UTF-8"),
    ],
)
def test_request_header(frame: str, expected: tuple[int, int, int, str | None, int]) -> None:
    raw = bytes.fromhex(frame)
    assert request_header(b"\xff\xff" + raw + AFTER, 2, 2 + len(raw)) == (*expected[:4], expected[4] + 2)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param("0008 0007 0000002a 0003 617070", id="version 1"),
        pytest.param("0008 0008 0000002a 0003 617070 00", id="version 2"),
        pytest.param("0008 0008 0000002a 0003 617070 01 0002cafe", id="version 2 with a tagged field"),
    ],
)
def test_cut_request_header_is_refused(frame: str) -> None:
    raw = bytes.fromhex(frame)
    for cut in range(len(raw)):
        for behind in (b"", AFTER):
            with pytest.raises(DecodeError):
                request_header(raw[:cut] + behind, 0, cut)


@pytest.mark.parametrize(
    ("api_key", "version", "frame", "expected"),
    [
        pytest.param(8, 7, "0000002a 0000", (42, 4), id="version 0"),
        pytest.param(8, 8, "0000002a 00 0000", (42, 5), id="version 1: flexible"),
        pytest.param(8, 8, "0000002a 01 0001ff 0000", (42, 8), id="version 1 with a tagged field"),
        pytest.param(18, 0, "0000002a 0000", (42, 4), id="ApiVersions 0"),
        pytest.param(18, 4, "0000002a 0000", (42, 4), id="ApiVersions 4 is flexible but has header 0"),
        pytest.param(7, 0, "0000002a 0000", (42, 4), id="ControlledShutdown 0"),
        pytest.param(97, 3, "0000002a 0000", (42, 4), id="unknown key"),
    ],
)
def test_response_header(api_key: int, version: int, frame: str, expected: tuple[int, int]) -> None:
    raw = bytes.fromhex(frame)
    assert response_header(api_key, version, raw, 0, len(raw)) == expected
    assert correlation_id(raw, 0, len(raw)) == expected[0]
    for cut in range(expected[1]):
        with pytest.raises(DecodeError):
            response_header(api_key, version, raw[:cut] + AFTER, 0, cut)


@pytest.mark.parametrize("cut", range(4))
def test_correlation_id_needs_four_bytes(cut: int) -> None:
    with pytest.raises(DecodeError):
        correlation_id(bytes(8), 0, cut)


ENTRY = {"api_key": 18, "min_version": 0, "max_version": 3}


@pytest.mark.parametrize(
    ("version", "body", "expected"),
    [
        pytest.param(
            4,
            "0023 00000001 0012 0000 0003",  # error 35, one entry: key 18, versions 0-3
            ({"error_code": 35, "api_keys": [ENTRY]}, 12, 0),
            id="version 4 answered in the form of version 0",
        ),
        pytest.param(99, "0023 00000000", ({"error_code": 35, "api_keys": []}, 6, 0), id="unknown version, old broker"),
        pytest.param(
            2,
            "0000 00000001 0012 0000 0003 00000000",
            ({"error_code": 0, "api_keys": [ENTRY], "throttle_time_ms": 0}, 16, 2),
            id="version 2 as asked",
        ),
        pytest.param(
            2,
            "0023 00000000 00000007",
            ({"error_code": 35, "api_keys": [], "throttle_time_ms": 7}, 10, 2),
            id="error 35 in the form of version 2",
        ),
    ],
)
def test_api_versions_response(version: int, body: str, expected: object) -> None:
    raw = bytes.fromhex(body)
    assert decode_response(18, version, raw + AFTER, 0, len(raw)) == expected


def test_response_without_schema_is_not_guessed() -> None:
    assert decode_response(18, 99, bytes(20), 0, 20) is None
    assert decode_response(97, 0, bytes(20), 0, 20) is None


@given(st.binary(max_size=40), st.integers(0, 40), st.integers(-1, 100), st.integers(-1, 20))
def test_headers_raise_nothing_but_decode_error(buf: bytes, end: int, api_key: int, version: int) -> None:
    end = min(end, len(buf))
    for read in (
        lambda: request_header(buf, 0, end)[4],
        lambda: response_header(api_key, version, buf, 0, end)[1],
    ):
        with suppress(DecodeError):
            assert read() <= end
    with suppress(DecodeError):
        decode_response(api_key, version, buf, 0, end)
