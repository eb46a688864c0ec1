"""What stands out whatever the protocol.

In: nothing. Out: POPULATIONS, over `exchanges`, `flows` and `connection_ends`.
"""

from __future__ import annotations

from wirewitness.analyser.network.facts import connection_populations, request_populations

POPULATIONS = (*request_populations.POPULATIONS, *connection_populations.POPULATIONS)
