"""Who the client of a connection is, and which API versions it could and did use there.

In: ApiVersions exchanges and the versions of all other requests of one flow. Out: kafka_api_versions rows, when the
flow ends: one for each API that the broker offers or the client used.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Row
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.rows.cluster_fields import API_VERSIONS
from wirewitness.dissectors.kafka.rows.fields import Request, Response, exchange_of
from wirewitness.dissectors.kafka.schema.api_keys import api_name

# Brokers of one version offer the same: so many different lists are kept as rows.
_MOST_LISTS = 64
# Columns of API_VERSIONS: from `api_key` on they differ between rows of one exchange; behind that, those of its use.
_API = API_VERSIONS.names.index("api_key")
_USED = API_VERSIONS.names.index("used_version_min") - _API
# API key, lowest and highest version.
Offered = tuple[int, int, int]


class _Answer(NamedTuple):
    """The ApiVersions exchange that counts. whole: it lists all APIs, as an answer with error 35 does not."""

    exchange: dict[str, int | None]
    client_id: str | None
    software: tuple[str | None, str | None]
    offered: dict[int, tuple[int, int]]
    whole: bool

    @property
    def listed(self) -> tuple[Offered, ...]:
        return tuple((key, *versions) for key, versions in self.offered.items())


class _Use(NamedTuple):
    """How an API was used first, and its versions so far."""

    exchange: dict[str, int | None]
    client_id: str | None
    lowest: int
    highest: int


class ConnectionVersions:
    """What one connection showed about API versions. full: the limit was reached. software: name and version of the
    client, where something else than its ApiVersions request tells them."""

    __slots__ = ("_answer", "_most", "_used", "full", "software")

    def __init__(self, limits: Limits) -> None:
        self._most = limits.max_api_versions
        self.full = False
        self.software: tuple[str | None, str | None] = (None, None)
        self._answer: _Answer | None = None
        self._used: dict[int, _Use] = {}

    def requested(self, request: Request) -> None:
        """Note the version of a request."""
        api_key, version = request.api_key, request.version
        used = self._used.get(api_key)
        if used is None:
            if len(self._used) >= self._most:
                self.full = True
                return
            self._used[api_key] = _Use(exchange_of(request, None), request.client_id, version, version)
        elif not used.lowest <= version <= used.highest:
            lowest, highest = min(used.lowest, version), max(used.highest, version)
            self._used[api_key] = used._replace(lowest=lowest, highest=highest)

    def answered(self, request: Request, response: Response) -> None:
        """Note an ApiVersions answer. The newest one counts; one that is an error adds to what was known."""
        if response.value is None:
            return
        asked = request.value or {}
        software = (asked.get("client_software_name"), asked.get("client_software_version"))
        if software == (None, None) and self._answer is not None:
            software = self._answer.software
        apis = response.value["api_keys"]
        offered = {api["api_key"]: (api["min_version"], api["max_version"]) for api in apis}
        whole = response.value["error_code"] == 0
        if not whole and self._answer is not None:
            whole, offered = self._answer.whole, {**self._answer.offered, **offered}
        if len(offered) > self._most:
            self.full = True
            offered = dict(islice(offered.items(), self._most))
        self._answer = _Answer(exchange_of(request, response), request.client_id, software, offered, whole)

    def offer(self, api_key: int) -> str | None:
        """What the broker offers for an API, in words; None when no answer of this connection tells."""
        if self._answer is None:
            return None
        versions = self._answer.offered.get(api_key)
        if versions is not None:
            return "the broker offers v{}-v{}".format(*versions)
        return "the broker does not offer it" if self._answer.whole else None

    def finish(self, out: Sink) -> None:
        """Give the rows of the connection."""
        rows = out.rows("kafka_api_versions")
        if rows is None:
            return
        answer, used = self._answer, self._used
        if answer is None:
            offered: tuple[Offered, ...] = ()
            software = self.software
        else:
            offered = answer.listed
            software = self.software if answer.software == (None, None) else answer.software
            asked = _head(answer.exchange, answer.client_id, software)
        unused = _unused(offered)
        for api_key in sorted({*unused, *used}):
            row = unused.get(api_key) or (api_key, api_name(api_key), None, None, None, None)
            use = used.get(api_key)
            if use is not None:
                row = (*row[:_USED], use.lowest, use.highest)
            if answer is None:
                assert use is not None
                asked = _head(use.exchange, use.client_id, software)
            rows.append(asked + row)


def _head(exchange: dict[str, int | None], client_id: str | None, software: tuple[str | None, str | None]) -> Row:
    """What rows of API_VERSIONS have in common that come of one exchange."""
    name, version = software
    row = API_VERSIONS.row(**exchange, client_id=client_id, software_name=name, software_version=version)
    return row[:_API]


@lru_cache(_MOST_LISTS)
def _unused(offered: tuple[Offered, ...]) -> dict[int, Row]:
    """The rest of such rows by API key, as long as nobody uses the API."""
    return {key: (key, api_name(key), lowest, highest, None, None) for key, lowest, highest in offered}
