"""Whole connections to raw rows and rows of `flows`, without a flow for each.

In: what `analyser/tcp/complete_connections.py` finds in a batch. Out: rows in the store; which connections were taken.
The others go on as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from wirewitness.analyser.base.faults import caught, sentence
from wirewitness.analyser.capture import EndpointTable
from wirewitness.analyser.capture.packing import Packing
from wirewitness.analyser.decoding.complete_connections import Portion, WholeDecoder, speaks
from wirewitness.analyser.decoding.faults import Place, tell, tell_of_no_flow
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.rows.timeorder import NO_FLOW
from wirewitness.analyser.decoding.run.capture_rows import note_row
from wirewitness.analyser.decoding.run.flow_records import FlowRecords
from wirewitness.analyser.tcp.complete_connections import Whole, WholeRead
from wirewitness.analyser.tcp.complete_flows import NO_PROTOCOL, Ints, Resets, WholeFlows
from wirewitness.analyser.tcp.flow import reset_note
from wirewitness.dissectors.core.lockstep.streams import Gives, Rows
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.core.protocol import Sink


class WholeReading:
    """A `WholeReader`. own_ports: those whose protocol the user named, of which nothing is read here. packing: see
    `Pipeline`."""

    def __init__(
        self,
        decoder: WholeDecoder,
        endpoints: EndpointTable,
        records: FlowRecords,
        own_ports: Sequence[int],
        out: Sink,
        store: RawStore,
        packing: Packing,
    ) -> None:
        self._decoder = decoder
        self._endpoints = endpoints
        self._records = records
        self._own_ports = own_ports
        self._out = out
        self._store = store
        self._packing = packing

    def read(self, found: Whole) -> WholeRead:
        """See `WholeReader.read`."""
        flows = found.flows
        client, server = speaks(found.streams)
        left = np.ones(len(flows), bool)
        if self._own_ports:
            left &= ~np.isin(self._endpoints.ports(flows.pair), self._own_ports).any(axis=0)
        protocol = np.full(len(flows), NO_PROTOCOL)
        taken = left & ~client & ~server
        protocols: list[str] = []
        packing = self._packing.if_open
        for portion in self._decoder.portions(found.streams, np.flatnonzero(left & client), self._out, packing):
            known = self._take(portion, flows)
            if packing is not None:
                packing.count()
            taken[known] = True
            if portion.protocol not in protocols:
                protocols.append(portion.protocol)
            protocol[known] = protocols.index(portion.protocol)
        numbers = np.flatnonzero(taken)
        if flows.resets is not None:
            self._tell_resets(flows, numbers, flows.resets)
        return WholeRead(numbers, protocol[numbers], protocols)

    def _tell_resets(self, flows: WholeFlows, numbers: Ints, resets: Resets) -> None:
        """What `close` remarks on the reset of a flow."""
        directions = np.where(resets.by_low == flows.client_is_low, CLIENT_TO_SERVER, SERVER_TO_CLIENT)
        columns = (directions, resets.packet, resets.ts_ns, flows.first_packet)
        for direction, packet, ts_ns, first_packet in zip(*(one[numbers].tolist() for one in columns), strict=True):
            self._out.expert(note_row(direction, packet, reset_note(packet, ts_ns)))
            self._store.mark(first_packet)

    def ended(self, flows: WholeFlows) -> None:
        """See `WholeReader.ended`."""
        self._records.add_whole(flows)

    def _take(self, portion: Portion, flows: WholeFlows) -> Ints:
        """Give the rows of a portion; the numbers of the connections that are taken."""
        if portion.read is None:
            text = sentence(portion.fault, "what reads messages together", "they are read one by one")
            ts_ns = int(flows.ts_last_ns[portion.numbers].max())
            tell_of_no_flow(text, ts_ns, self._out, "bug")
            self._store.mark(NO_FLOW)
            return portion.numbers[:0]
        first_packet = flows.first_packet[portion.numbers]
        for rows in portion.read.rows:
            self._claim(rows, first_packet)
        for single in portion.read.single:
            self._give(single, portion, flows)
        return portion.numbers[portion.read.known]

    def _claim(self, rows: Rows, first_packet: Ints) -> None:
        if len(rows.row) and self._out.rows(rows.table) is not None:
            self._store.claim_many(rows.table, rows.block, rows.row, first_packet[rows.connection])

    def _give(self, single: Gives, portion: Portion, flows: WholeFlows) -> None:
        number = int(portion.numbers[single.connection])
        first_packet = int(flows.first_packet[number])
        self._out.drain = partial(self._store.drain, first_packet)
        self._out.take = partial(self._store.claim, first_packet)
        try:
            single.give(self._out)
        except Exception as error:  # of a decoder; the rest of this connection is not told
            place = Place(None, first_packet, int(flows.ts_first_ns[number]))
            tell(portion.protocol, caught(error), place, self._out, goes_on=False)
        finally:
            self._store.mark(first_packet)
        self._out.relieve()
