"""The upgrade to WebSocket: what both heads must say, and which of their bytes are credentials."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.shares import examples
from tests.support.timing import takes_less_than
from wirewitness.dissectors.carriers.frames import may_open
from wirewitness.dissectors.carriers.upgrade import MAX_HEAD_BYTES, opening

REQUEST = (
    b"GET /chat HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: mqttv3.1, mqtt\r\n"
)
RESPONSE = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
)
END = b"\r\n"


def test_both_heads_open_it() -> None:
    found = opening(REQUEST + END + b"\x82\x80", RESPONSE + b"Sec-WebSocket-Protocol: mqtt\r\n" + END + b"\x82\x00")
    assert found is not None
    assert found.before == (len(REQUEST) + 2, len(RESPONSE) + 32)
    assert (found.inner, found.compression, found.hidden) == ("mqtt", "", ())
    assert found.told.text == "the connection was upgraded to WebSocket, subprotocol mqtt"


def test_no_subprotocol_and_compression() -> None:
    agreed = b"Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover\r\n"
    found = opening(REQUEST + END, RESPONSE + agreed + END)
    assert found is not None
    assert (found.inner, found.compression) == (None, "permessage-deflate; client_no_context_takeover")


@pytest.mark.parametrize(
    ("client", "server"),
    [
        pytest.param(REQUEST, RESPONSE + END, id="the request goes on"),
        pytest.param(REQUEST + END, RESPONSE, id="the response goes on"),
        pytest.param(REQUEST + END, b"", id="no response yet"),
        pytest.param(REQUEST.replace(b"websocket", b"h2c") + END, RESPONSE + END, id="asked for something else"),
        pytest.param(REQUEST + END, RESPONSE.replace(b"101", b"200") + END, id="refused"),
        pytest.param(REQUEST + END, RESPONSE.replace(b"WebSocket\r", b"h2c\r") + END, id="granted something else"),
        pytest.param(b"GET nonsense", b"nonsense", id="nonsense"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"y" * 2 * MAX_HEAD_BYTES, RESPONSE + END, id="an endless head"),
        pytest.param(b"", b"", id="nothing"),
    ],
)
def test_what_opens_nothing(client: bytes, server: bytes) -> None:
    assert opening(client, server) is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"GET /", True), (b"GE", True), (b"POST", False), (b"\0\0\0\x1c", False)],
)
def test_only_a_get_may_open_it(data: bytes, expected: bool) -> None:
    assert may_open(data) is expected


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        (b"Authorization: Bearer abc.def", b"Bearer abc.def"),
        (b"proxy-authorization:  Basic eA==", b"Basic eA=="),
        (b"Cookie: session=1; other=2", b"session=1; other=2"),
        (b"X-Api-Key: 42", b"42"),
        (b"X-Amz-Security-Token: zz", b"zz"),
        (b"X-Api-Key:\r\n\t42", b"42"),
        (b"X-Api-Key: 4\r\n 2", b"4\r\n 2"),
        (b"Origin: https://app:x1y2@portal.example", b"x1y2"),
        (b"User-Agent: agent/2 password=x1y2", b"x1y2"),
        (b"Sec-WebSocket-Protocol: mqtt, bearer." + b"k" * 40, b"mqtt, bearer." + b"k" * 40),
    ],
    ids=lambda value: value.decode()[:12] if isinstance(value, bytes) else None,
)
def test_credentials_in_heads(line: bytes, secret: bytes) -> None:
    head = REQUEST.replace(b"/chat", b"/chat?token=tt") + line + END + END
    found = opening(head, RESPONSE + b"Set-Cookie: id=7\r\n" + END)
    assert found is not None
    sides = (head, RESPONSE + b"Set-Cookie: id=7\r\n" + END)
    assert [sides[side][start:end] for side, start, end in found.hidden] == [b"token=tt", secret, b"id=7"]


@pytest.mark.parametrize("line", [b"auth" * 3_900 + b":", b"key" * 5_200 + b":", b"auth:" + b"\r\n " * 5_000])
def test_heads_made_to_be_slow(line: bytes) -> None:
    assert takes_less_than(0.05, lambda: opening(REQUEST + line + END + END, RESPONSE + END))


def test_a_token_in_place_of_a_name_is_not_told() -> None:
    found = opening(REQUEST + END, RESPONSE + b"Sec-WebSocket-Protocol: " + b"k" * 41 + END + END)
    assert found is not None
    assert (found.inner, found.told.text) == (None, "the connection was upgraded to WebSocket")
    assert len(found.hidden) == 1


@examples(200)
@given(st.binary(max_size=60), st.integers(0, 250), st.binary(max_size=60), st.integers(0, 150))
def test_any_heads(asked: bytes, asked_at: int, answered: bytes, answered_at: int) -> None:
    client, server = REQUEST + END, RESPONSE + END
    client = client[:asked_at] + asked + client[asked_at + len(asked) :]
    server = server[:answered_at] + answered + server[answered_at + len(answered) :]
    for heads in ((client, server), (b"GET " + asked, answered), (asked, server)):
        found = opening(*heads)
        assert found is None or (found.before[0] <= len(heads[0]) and found.before[1] <= len(heads[1]))
