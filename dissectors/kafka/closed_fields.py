"""Fields of Kafka that are closed. In: an API key. Out: which of its fields, and what is shown of them."""

from __future__ import annotations

from collections.abc import Mapping

from wirewitness.dissectors.core.closed import Closing, closed_text

# Logins: the broker's error text. Groups: why a member comes or leaves (KIP-800).
_FIELDS: dict[int, Mapping[str, Closing]] = {
    11: {"reason": closed_text},
    13: {"reason": closed_text},
    17: {"error_message": closed_text},
    36: {"error_message": closed_text},
}
_NONE: Mapping[str, Closing] = {}


def closed_fields(api_key: int) -> Mapping[str, Closing]:
    """Names of fields in requests and answers, and how each is closed."""
    return _FIELDS.get(api_key, _NONE)
