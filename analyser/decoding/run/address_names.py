"""Files that name addresses, as the options of a run name them. In: options. Out: the names, or why there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture.errors import CaptureError

if TYPE_CHECKING:
    from wirewitness.analyser.capture.workloads.address_names import AddressNames


def named_addresses(options: ReadOptions) -> AddressNames | None:
    """What files say of addresses; None where no file is given. CaptureError for one that cannot be used."""
    if not options.hosts:
        return None
    from wirewitness.analyser.capture.workloads.files import NamesFileError, read_names

    try:
        return read_names(options.hosts)
    except NamesFileError as error:
        raise CaptureError(f"--hosts {error}.") from error
