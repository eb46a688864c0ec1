"""Settings that hold a secret: the name of a setting and its value in, the value fit to be shown out.

Brokers treat settings of type PASSWORD as secret; a client may set others that they do not know (plugins, connectors).
So names decide, and rather one value too many is masked.
"""

from __future__ import annotations

from wirewitness.dissectors.core.secrets import is_secret_name, masked
from wirewitness.dissectors.kafka.schema.definitions import MASKED


def shown(name: str, value: str | None) -> str:
    """The value as people may see it: masked for a secret setting; a password inside a URL is masked too."""
    if value is None:
        return "null"
    return str(MASKED["string"]) if is_secret_name(name) else masked(value)
