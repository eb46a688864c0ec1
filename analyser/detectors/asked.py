"""Which detectors have any row to look at: asking for none costs each of the others a statement that must be planned.

In: the names of tables that have rows, and the protocols of flows. Out: detectors; the others could find nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from analyser.detectors.detector import Detector
from analyser.registry.tables import TABLES

# Rules about connections, whatever they carry. Some read tables of a protocol too, for what it says of a connection.
_OF_ANY_PROTOCOL = ("CAP", "TCP", "TLS", "NET")


def asked(detectors: Iterable[Detector], filled: Collection[str], protocols: Collection[str | None]) -> list[Detector]:
    """Those worth asking. filled: tables with rows. protocols: what flows speak, None for what nobody could read.

    One of its tables must have rows. A detector of a protocol is asked where that is a table of its protocol, or a flow
    speaks it: connections and remarks of other protocols are nothing to it.
    """
    return [one for one in detectors if not one.reads.keys().isdisjoint(filled) and _is_there(one, filled, protocols)]


def _is_there(detector: Detector, filled: Collection[str], protocols: Collection[str | None]) -> bool:
    """Is there anything of its protocol?"""
    own = {name: TABLES[name].protocol for name in detector.reads if TABLES[name].protocol}
    if not own or detector.code.startswith(_OF_ANY_PROTOCOL):
        return True
    return not own.keys().isdisjoint(filled) or not {*own.values()}.isdisjoint(protocols)
