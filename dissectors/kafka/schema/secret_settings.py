"""Settings that may be shown: the name of a setting and its value in, the value fit to be shown out.

Shown are values of settings that are known to be harmless, but for what looks like a secret inside them. A client may
set others that nobody knows (plugins, connectors), and write a password into any of these.
"""

from __future__ import annotations

from wirewitness.dissectors.core.secrets import masked
from wirewitness.dissectors.kafka.schema.definitions import MASKED
from wirewitness.dissectors.kafka.schema.harmless_settings import is_harmless

# Settings of a broker's loggers are called after classes; these are their values.
_LEVELS = frozenset({"", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"})


def shown(name: str, value: str | None) -> str:
    """The value as people may see it: masked unless the setting is harmless; a password inside a URL is masked too."""
    if value is None:
        return "null"
    return masked(value) if is_harmless(name) or value in _LEVELS else str(MASKED["string"])
