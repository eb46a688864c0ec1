"""Fields of what only the broker's request log tells of an exchange."""

from __future__ import annotations

from wirewitness.dissectors.core.fields import Field, Fields
from wirewitness.dissectors.kafka.rows.common_fields import CLIENT_ID, REQUEST_OFFSET, RESPONSE_OFFSET, TS, TS_RESPONSE

TABLE = "kafka_request_times"


def _ms(name: str, meaning: str) -> Field:
    return Field(name, "float64", meaning, unit="ms")


REQUEST_TIMES = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    TS,
    TS_RESPONSE,
    Field("line", "int64", "line of the log in its file, from 1", source="derived"),
    CLIENT_ID,
    Field("operation", "string", "API, as in exchanges", nullable=False),
    Field("principal", "string", "who asked, as the broker authenticated them: User:name, or User:ANONYMOUS"),
    Field("listener", "string", "name of the broker's listener"),
    Field("security_protocol", "string", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
    Field("software_name", "string", "the client library, by its own words; unknown for old ones"),
    Field("software_version", "string", "its version, by its own words"),
    Field(
        "forwarded",
        "bool",
        "a broker passed the request on to the controller: client and connection are that broker's",
        nullable=False,
    ),
    _ms("total_ms", "from when the broker had read the request until its response was sent"),
    _ms("request_queue_ms", "of it: until a thread of the broker took the request"),
    _ms("local_ms", "of it: work of this broker"),
    _ms("remote_ms", "of it: waiting for others, or for data and members that were asked for"),
    _ms("throttle_ms", "of it: held back by a quota"),
    _ms("response_queue_ms", "of it: until a thread took the response"),
    _ms("send_ms", "of it: until the response was handed to the network"),
)
