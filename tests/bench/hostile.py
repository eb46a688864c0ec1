"""What it costs to try lock-step in vain over a whole capture: `table` as it is, beside everything one by one.

In: the messages of `irregular.py`. Out: a capture of each kind, each message in a packet of its own, and the processor
time of both ways up to the table in a file. Both must find the same number of rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

from tests.bench.checks import equal
from tests.bench.irregular import CONNECTIONS, IN_A_BATCH, IRREGULAR, Shape
from tests.bench.measure import Run, measure, warm
from tests.bench.programs import count_rows
from tests.bench.results import Irregular
from tests.support.replay import START_NS, Replayed
from tests.support.replay_wire import ACK, FIN, PSH, SERVER, SYN, PcapWriter, Side
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER

PORTS = {"kafka": 9092, "mqtt": 1883, "mongo": 27017}
PACKET_NS = 10_000
NEVER = 1 << 62
# Where few messages are told from many: of a protocol, and of connections that are taken whole.
# What is measured imports the same with and without lock-step.
PROGRAM = """
import sys
from wirewitness.dissectors.{protocol} import decoder
from wirewitness.analyser.tcp import complete_connections
if {never}:
    decoder.LEAST_FRAMES = complete_connections.LEAST = {never}
from wirewitness.app.start import main
main()
"""


def hostile_costs(folder: Path, packets: int, runs: int) -> Iterator[Irregular]:
    """Each kind in a capture of so many packets."""
    capture, output = folder / "hostile.pcap", folder / "hostile.parquet"
    for name, shape in IRREGULAR.items():
        made = write_irregular(capture, shape, packets)
        warm(capture)
        check, _ = equal(1)
        both: tuple[list[Run], list[Run]] = [], []
        for _ in range(runs):
            for found, never in zip(both, (0, NEVER), strict=True):
                program = PROGRAM.format(protocol=shape.protocol, never=never)
                command = ["env", "ARROW_DEFAULT_MEMORY_POOL=system", sys.executable, "-c", program]
                command += ["table", "exchanges", str(capture), "--format", "parquet", "--output", str(output)]
                found.append(measure(command, folder / "standard_output.txt", folder / "errors.txt"))
                check(name, count_rows(output))
        print(f"irregular, {name}: {both[0][-1]}, one by one {both[1][-1]}", file=sys.stderr, flush=True)
        yield Irregular(name, made, *both)
        for path in (capture, output):
            path.unlink()


def write_irregular(out: Path, shape: Shape, packets: int) -> Replayed:
    """At least so many packets of connections side by side; where it is said anew, another follows one that ends."""
    with out.open("wb", buffering=1 << 20) as file:
        writer, numbers = PcapWriter(file), count()
        slots = [_connection(shape, next(numbers)) for _ in range(CONNECTIONS)]
        for now_ns in count(START_NS, PACKET_NS):
            slot = writer.packets % CONNECTIONS
            make = next(slots[slot], None)
            if make is None:
                if writer.packets >= packets:
                    break
                slots[slot] = _connection(shape, next(numbers))
                make = next(slots[slot])
            elif writer.packets >= packets and not shape.anew:
                break
            writer.add(now_ns, make(now_ns))
        return Replayed(writer.packets, writer.size_bytes, 0, next(numbers), 0, 0)


def _connection(shape: Shape, number: int) -> Iterator[Callable[[int], bytes]]:
    """Gives what makes its next packet at a time. Those that are said anew end with both FINs."""
    address, port = bytes((10, 77, 1 + number // 200, 1 + number % 200)), 40_000 + number
    client = Side(address, port, SERVER, PORTS[shape.protocol], 2 * number + 1)
    server = Side(SERVER, PORTS[shape.protocol], address, port, 2 * number + 2)

    def send(from_client: bool, flags: int, data: bytes = b"") -> Callable[[int], bytes]:
        source, target = (client, server) if from_client else (server, client)

        def make(now_ns: int) -> bytes:
            return source.packet(now_ns, flags, 0 if flags == SYN else target.seq, target.clock_ms(now_ns), data)

        return make

    yield from (send(True, SYN), send(False, SYN | ACK), send(True, ACK))
    for direction, data in islice(shape.say(), IN_A_BATCH if shape.anew else None):
        yield send(direction == CLIENT_TO_SERVER, PSH | ACK, data)
    yield from (send(True, FIN | ACK), send(False, FIN | ACK), send(True, ACK))
