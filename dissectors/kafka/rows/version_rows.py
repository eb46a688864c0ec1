"""Who the client of a connection is, and which API versions it could and did use there.

In: ApiVersions exchanges and the versions of all other requests of one flow. Out: kafka_api_versions rows, when the
flow ends: one for each API that the broker offers or the client used.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.rows.cluster_fields import API_VERSIONS
from wirewitness.dissectors.kafka.rows.fields import Request, Response, exchange_of
from wirewitness.dissectors.kafka.schema.api_keys import api_name


class _Answer(NamedTuple):
    """The ApiVersions exchange that counts. whole: it lists all APIs, as an answer with error 35 does not."""

    exchange: dict[str, int | None]
    client_id: str | None
    software: tuple[str | None, str | None]
    offered: dict[int, tuple[int, int]]
    whole: bool


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
        answer = self._answer
        offered = answer.offered if answer is not None else {}
        software = self.software
        if answer is not None and answer.software != (None, None):
            software = answer.software
        for api_key in sorted({*offered, *self._used}):
            used = self._used.get(api_key)
            if answer is not None:
                exchange, client_id = answer.exchange, answer.client_id
            else:
                assert used is not None
                exchange, client_id = used.exchange, used.client_id
            versions = offered.get(api_key, (None, None))
            rows.append(
                API_VERSIONS.row(
                    **exchange,
                    client_id=client_id,
                    software_name=software[0],
                    software_version=software[1],
                    api_key=api_key,
                    api_name=api_name(api_key),
                    min_version=versions[0],
                    max_version=versions[1],
                    used_version_min=None if used is None else used.lowest,
                    used_version_max=None if used is None else used.highest,
                )
            )
