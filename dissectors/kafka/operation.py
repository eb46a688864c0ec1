"""All that is known about one API in one version, looked up once and kept: what every message of it needs."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from wirewitness.dissectors.kafka.headers import API_VERSIONS
from wirewitness.dissectors.kafka.long_polls import WAITS, Waits, never
from wirewitness.dissectors.kafka.rows.errors_in import ErrorFinder, error_finder
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS, api_name
from wirewitness.dissectors.kafka.schema.compile import Decoder, decoder


class Operation(NamedTuple):
    """One API in one version.

    request, response: decoders, None where no schema covers the version. tagged_response: its header may hold tagged
    fields. first_error: finds the error code in a decoded response. undecoded: why there is no decoder, and the code
    of that remark; empty where there is one. waits: does a request ask the broker to wait?
    """

    name: str
    version: str | None
    request: Decoder | None
    response: Decoder | None
    tagged_response: bool
    first_error: ErrorFinder
    undecoded: tuple[str, str]
    waits: Waits = never


# What a bare SASL token counts as: an operation without version, of which nothing is decoded.
TOKEN = Operation("SaslToken", None, None, None, False, lambda value: 0, ("sasl_token", "a SASL token is not decoded"))


@lru_cache(maxsize=1024)
def operation(api_key: int, version: int) -> Operation:
    """The operation; never fails, whatever a hostile header claims."""
    request = decoder(api_key, version, "request")
    known = API_KEYS.get(api_key)
    if known is None:
        undecoded = ("unknown_api_key", f"API key {api_key} is not known")
    elif version > known.newest:
        undecoded = ("unknown_version", f"{known.name} v{version} is newer than v{known.newest}, the newest known")
    else:
        undecoded = ("undecoded_body", f"the body of {known.name} v{version} is not decoded")
    flexible = known is not None and known.flexible is not None and version >= known.flexible
    return Operation(
        api_name(api_key),
        str(version),
        request,
        decoder(api_key, version, "response"),
        flexible and api_key != API_VERSIONS,
        error_finder(api_key, version),
        ("", "") if request else undecoded,
        WAITS.get(api_key, never),
    )
