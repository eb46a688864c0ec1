"""Exchanges of one API and version that are read together. In: a `Batch`. Out: `Group`s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.batch_backoff import Rests
from wirewitness.dissectors.core.blocks import Coded
from wirewitness.dissectors.core.lockstep.column_ops import coded
from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.kafka.headers import API_VERSIONS, CONTROLLED_SHUTDOWN
from wirewitness.dissectors.kafka.lockstep.batch import REQUEST_HEADER_BYTES, RESPONSE_HEADER_BYTES, Batch, Side
from wirewitness.dissectors.kafka.lockstep.plan import Plan, body_plan
from wirewitness.dissectors.kafka.lockstep.read import Columns, Reader, TooMany
from wirewitness.dissectors.kafka.lockstep.records import Batches, Opener, Place, batches_of, first_records
from wirewitness.dissectors.kafka.lockstep.texts import Strings
from wirewitness.dissectors.kafka.operation import Operation, operation
from wirewitness.dissectors.kafka.rows.api_rows import FETCH, PRODUCE
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS

# From so many exchanges on it pays to read them together.
LEAST = 24
# Bytes of exchanges that are read at a time, and elements of their arrays, since each may become a row.
MAX_BYTES = 2 << 20
MAX_ELEMENTS = 1 << 17
# So often the regular exchanges are read again without the others, since an array may be too uneven for fewer.
_ROUNDS = 4
# Their answer may have another form than its version's; their header has no client id.
_OTHERWISE = frozenset({API_VERSIONS, CONTROLLED_SHUTDOWN})
_VERSIONS = 1 << 16
# The key and version of pairs that are left out.
_NONE = -_VERSIONS
RECORDS_AT: Mapping[int, Place] = {
    PRODUCE: Place(True, "topic_data", "partition_data", may_be_cut=False),
    FETCH: Place(False, "responses", "partitions", may_be_cut=True),
}


class Group(NamedTuple):
    """Exchanges of one API and version, in the order of the batch. asked, answered: the bodies.

    connection: the number of each one's connection. batches: of Produces and Fetches whose records are looked at.
    """

    api_key: int
    version: int
    known: Operation
    strings: Strings
    connection: Ints
    requests: Side
    responses: Side
    correlation_ids: Ints
    client_ids: Coded
    asked: Columns
    answered: Columns
    batches: Batches | None

    def __len__(self) -> int:
        return len(self.connection)


class Records(NamedTuple):
    """What is wanted of records. apis: those in RECORDS_AT whose batches are looked at. opener: gives their data, None
    where nobody wants it. fit: the pairs of which a request with records may be read together with others."""

    apis: frozenset[int]
    opener: Opener | None
    fit: Flags


def groups(batch: Batch, fit: frozenset[int], records: Records, rests: Rests) -> Iterator[Group]:
    """The regular exchanges of APIs that `fit`, where there are enough of a version. The others are left out.

    rests: of versions of which most exchanges were irregular, how many batches long they are not tried again; changed
    here.
    """
    strings = Strings(batch.blob)
    keys = batch.api_key * _VERSIONS + (batch.version & (_VERSIONS - 1))
    keys[(batch.api_key == PRODUCE) & ~records.fit] = _NONE
    for key, count in zip(*(found.tolist() for found in np.unique(keys, return_counts=True)), strict=True):
        api_key, version = divmod(key, _VERSIONS)
        if count < LEAST or api_key not in fit or api_key in _OTHERWISE:
            continue
        request, response = body_plan(api_key, version, "request"), body_plan(api_key, version, "response")
        if request is None or response is None:
            continue
        if rests.still(key):
            continue
        tried = regular = 0
        own = records if api_key in records.apis else None
        parts = _parts(batch, np.flatnonzero(keys == key))
        while parts:
            rows = parts.pop(0)
            try:
                found = _group(batch, strings, (api_key, version), rows, (request, response), own)
            except TooMany:
                if len(rows) >= 2 * LEAST:
                    parts[:0] = np.array_split(rows, 2)
                    continue
                found = None
            tried += len(rows)
            if found is not None:
                regular += len(found)
                yield found
            if 2 * regular < tried:
                break
        rests.told(key, in_vain=2 * regular < tried)


def _parts(batch: Batch, rows: Ints) -> list[Ints]:
    """The rows in parts of about MAX_BYTES."""
    sizes = np.cumsum(batch.requests.size[rows] + batch.responses.size[rows])
    return np.split(rows, np.searchsorted(sizes, np.arange(MAX_BYTES, int(sizes[-1]), MAX_BYTES)))


def _group(
    batch: Batch, strings: Strings, api: tuple[int, int], rows: Ints, plans: tuple[Plan, Plan], records: Records | None
) -> Group | None:
    """The exchanges of these rows that are regular. Raises TooMany."""
    first_flexible = API_KEYS[api[0]].flexible
    flexible = first_flexible is not None and api[1] >= first_flexible
    for _ in range(_ROUNDS):
        if len(rows) < LEAST:
            return None
        asked, answered, irregular = _bodies(batch, rows, plans, flexible)
        batches = None
        if records is not None and not irregular.any():
            place = RECORDS_AT[api[0]]
            body = asked if place.of_request else answered
            batches, irregular = batches_of(batch.blob, place, body, len(rows), records.opener)
        if not irregular.any():
            break
        if 2 * np.count_nonzero(irregular) > len(rows):
            return None
        rows = rows[~irregular]
    else:
        return None
    requests, responses = batch.requests.rows(rows), batch.responses.rows(rows)
    return Group(
        *api,
        operation(*api),
        strings,
        batch.connection[rows],
        requests,
        responses,
        batch.correlation_id[rows],
        coded(strings.at(requests.start + REQUEST_HEADER_BYTES, batch.client_id_bytes[rows])),
        asked,
        answered,
        first_records(batch.blob, batches) if batches is not None and api[0] == PRODUCE else batches,
    )


def _bodies(batch: Batch, rows: Ints, plans: tuple[Plan, Plan], flexible: bool) -> tuple[Columns, Columns, Flags]:
    """The bodies of requests and responses, and which exchanges are irregular."""
    requests, responses = batch.requests.rows(rows), batch.responses.rows(rows)
    bodies = requests.start + REQUEST_HEADER_BYTES + np.maximum(batch.client_id_bytes[rows], 0)
    answers = responses.start + RESPONSE_HEADER_BYTES
    irregular = bodies + flexible > requests.end
    if flexible:
        irregular |= answers >= responses.end
        irregular |= (batch.blob.bytes_at(bodies) != 0) | (batch.blob.bytes_at(answers) != 0)
    reader = Reader(batch.blob, MAX_ELEMENTS)
    asked, odd = reader.bodies(plans[0], bodies + flexible, requests.end)
    answered, odd_answers = reader.bodies(plans[1], answers + flexible, responses.end)
    acks = asked.get("acks")
    if isinstance(acks, np.ndarray):  # a Produce that asks for no answer, and has one
        irregular |= acks == 0
    return asked, answered, irregular | odd | odd_answers
