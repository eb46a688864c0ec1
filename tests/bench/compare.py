"""Runs programs over generated captures and collects what they took.

In: profiles. Out: `Timing` and `Memory` values. Every run's counts are checked: all programs must see every message
that the generator wrote, or CountsDiffer is raised. Of a capture with loss both may see less, wirewitness nothing more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.checks import (
    WANTED_WHOLE,
    Check,
    CountsDiffer,
    all_of,
    analysed,
    equal,
    messages_of,
    none_invented,
    publishes_analysed,
    some_analysed,
    some_publishes_analysed,
    the_same,
    whole_messages_of,
)
from tests.bench.measure import Run, measure, warm
from tests.bench.profiles import Profile, Size
from tests.bench.programs import (
    Program,
    analyse,
    shared_out,
    tshark,
    tshark_fields,
    tshark_mongo,
    tshark_mqtt,
    tshark_ordinary,
    tshark_records,
    tshark_tls,
    wirewitness,
    wirewitness_commands,
    wirewitness_messages,
    wirewitness_mqtt,
    wirewitness_records,
)
from tests.bench.results import Memory, Timing, Two
from tests.support.replay import Replayed, replay


class Bench:
    """Runs programs over captures below one folder; nothing stays there but small outputs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._capture = folder / "capture.pcap"
        self._text, self._table = folder / "tshark.tsv", folder / "table.parquet"
        self._report, self._keylog = folder / "report.json", folder / "keys.log"
        self._fields, self.unknown_fields = tshark_fields()
        self._known_starts: tuple[float, float] | None = None
        folder.mkdir(exist_ok=True)

    def exchanges(self, profile: Profile, size: Size, runs: int) -> Timing:
        """Both programs in turn over a capture without loss, of one protocol or of three."""
        made = self._make(profile.replayed, size)
        timing = self._timing(profile, made, self._pair(profile), runs, all_of(made), analysed(made))
        return timing._replace(counted=f"{made.exchanges:,} exchanges")

    def real(self, profile: Profile, size: Size, runs: int) -> Timing:
        """Both in turn over lab captures as they are."""
        made = self._make(profile.replayed, size)
        pair = tshark_ordinary(self._capture, self._text, self._fields), wirewitness(self._capture, self._table)
        timing = self._timing(profile, made, pair, runs, the_same(), the_same())
        return timing._replace(counted=f"{made.packets:,} packets")

    def lossy(self, profile: Profile, size: Size, runs: int) -> Timing:
        """Both in turn; then the messages whose bytes are all there against those that were decoded to the end."""
        made = self._make(profile.replayed, size)
        timing = self._timing(profile, made, self._pair(profile), runs, none_invented(made), some_analysed(made))
        messages = wirewitness_messages(self._capture, self._table)
        run = self._run(messages)
        whole, complete = made.requests + made.responses, sum(messages.found())
        if complete > whole:
            raise CountsDiffer(f"wirewitness decoded {complete} messages, {whole} are whole")
        met = "met" if complete >= WANTED_WHOLE * whole else "MISSED"
        printed = sum(self._tshark().found())
        note = (
            f"lossy: of {2 * made.exchanges:,} messages {whole:,} are whole in the capture; wirewitness decoded "
            f"{complete:,} to their last byte ({complete / whole:.2%}, aim {WANTED_WHOLE:.0%}: {met}; more than are "
            f"whole would have ended the run; {run.wall_s:.1f} s for that table). tshark printed {printed:,} "
            "correlation ids, those of broken messages among them"
        )
        return timing._replace(counted=f"{whole:,} whole messages", note=note)

    def mongo(self, profile: Profile, size: Size, runs: int) -> Timing:
        """tshark and the exchanges table in turn; then a run that makes mongo_commands as well, for the note."""
        made = self._make(profile.replayed, size)
        pair = tshark_mongo(self._capture, self._text), wirewitness(self._capture, self._table)
        timing = self._timing(profile, made, pair, runs, all_of(made), analysed(made))
        run = self._checked(wirewitness_commands(self._capture, self._table), all_of(made))
        note = f"{profile.name}: mongo_commands with all columns took {run.wall_s:.1f} s ({run.cpu_s:.1f} s CPU)"
        return timing._replace(counted=f"{made.exchanges:,} commands", note=note)

    def records(self, profile: Profile, size: Size, runs: int, options: list[str]) -> Iterator[Timing]:
        """Every codec: all records decoded, tshark printing their keys. Both must find the same number."""
        from tests.support.record_batches import CODEC_NUMBERS
        from tests.support.replay_records import RECORDS_PER_BATCH, write_records

        for codec in CODEC_NUMBERS:
            packets, size_bytes, exchanges = write_records(self._capture, codec, size.size_bytes)
            made = Replayed(packets, size_bytes, exchanges, 0, exchanges, exchanges)
            pair = (
                tshark_records(self._capture, self._text),
                wirewitness_records(self._capture, self._table, *options),
            )
            check, counts = equal(RECORDS_PER_BATCH)
            timing = self._timing(profile, made, pair, runs, check)
            yield timing._replace(profile=f"records {codec}", counted=f"{counts[0][0]:,} records")

    def mqtt(self, profile: Profile, size: Size, runs: int) -> Timing:
        """As many PUBLISH packets as the size has packets: types, identifiers and topics of all messages."""
        from tests.support.replay_mqtt import write_publishes

        made = write_publishes(self._capture, size.packets)
        pair = tshark_mqtt(self._capture, self._text), wirewitness_mqtt(self._capture, self._table)
        timing = self._timing(profile, made, pair, runs, messages_of(made), publishes_analysed(made))
        return timing._replace(counted=f"{made.exchanges:,} publishes, {made.requests + made.responses:,} messages")

    def mqtt_lossy(self, profile: Profile, size: Size, runs: int) -> Timing:
        """The same where the capture misses packets: as many of the messages as are there, and none made up."""
        from tests.support.replay_mqtt import write_publishes

        made = write_publishes(self._capture, size.packets, lossy=True)
        pair = tshark_mqtt(self._capture, self._text), wirewitness_mqtt(self._capture, self._table)
        timing = self._timing(profile, made, pair, runs, whole_messages_of(made), some_publishes_analysed(made))
        return timing._replace(counted=f"{made.requests + made.responses:,} whole messages")

    def tls(self, profile: Profile, size: Size, runs: int) -> Timing:
        """The capture's exchanges inside TLS 1.3; both programs have the key log."""
        from tests.support.replay_tls import encrypt

        made = self._make(profile.replayed, size)
        encrypt(self._capture, self._capture, self._keylog)
        keys = "--keylog", str(self._keylog)
        pair = (
            tshark_tls(self._capture, self._text, self._fields, self._keylog),
            wirewitness(self._capture, self._table, *keys),
        )
        timing = self._timing(profile, made, pair, runs, all_of(made), analysed(made), keys)
        return timing._replace(counted=f"{made.exchanges:,} exchanges")

    def memory(self, profile: Profile, base: Size, times: int) -> Memory:
        """One run each over TIMES the base size."""
        made = self._make(profile.replayed, base.times(times))
        theirs, ours = (self._checked(program, all_of(made)) for program in self._pair(profile))
        report = None
        if profile.report_memory:
            report = self._checked(analyse(self._capture, self._report), analysed(made))
        _say(f"{profile.name} {times}x: tshark {theirs}, wirewitness {ours}, analyse {report}")
        return Memory(profile.name, times, made, theirs, ours, report)

    def clean(self) -> None:
        """Remove the capture and the outputs."""
        for path in (self._capture, self._text, self._table, self._report, self._keylog):
            path.unlink(missing_ok=True)

    def _make(self, replayed: str, size: Size) -> Replayed:
        return replay(self._capture, replayed, size.packets, size.size_bytes, size.flows or None)

    def _tshark(self) -> Program:
        return tshark(self._capture, self._text, self._fields)

    def _pair(self, profile: Profile) -> tuple[Program, Program]:
        if profile.kind == "ordinary":
            return tshark_ordinary(self._capture, self._text, self._fields), wirewitness(self._capture, self._table)
        return self._tshark(), wirewitness(self._capture, self._table)

    def _timing(
        self,
        profile: Profile,
        made: Replayed,
        pair: tuple[Program, Program],
        runs: int,
        check: Check,
        check_report: Check | None = None,
        options: Sequence[str] = (),
    ) -> Timing:
        """The pair in turn, and `analyse` with OPTIONS where CHECK_REPORT says what its report must count."""
        warm(self._capture)
        baseline: list[Run] = []
        ours: list[Run] = []
        reports: list[Run] = []
        shared: list[Run] = []
        shared_reports: list[Run] = []
        report = analyse(self._capture, self._report, *options)
        for number in range(runs):
            baseline.append(self._checked(pair[0], check))
            ours.append(self._checked(pair[1], check))
            shared.append(self._checked(shared_out(pair[1]), check))
            _say(f"{profile.name} run {number + 1}: {pair[0].name} {baseline[-1]}, {pair[1].name} {ours[-1]}")
            if check_report is not None:
                reports.append(self._checked(report, check_report))
                shared_reports.append(self._checked(shared_out(report), check_report))
                _say(f"{profile.name} run {number + 1}: analyse {reports[-1]}")
        return Timing(
            profile.name, made, "", pair[0].name, baseline, ours, profile.wanted,
            reports=reports, analysed=profile.analysed, two=Two(self._starts(), shared, shared_reports, profile.two),
        )  # fmt: skip

    def _starts(self) -> tuple[float, float]:
        """What one and two processes take for nearly nothing, in seconds of wall time; measured once."""
        if self._known_starts is None:
            tiny = self._folder / "tiny.pcap"
            replay(tiny, "small", 500, 0, 4)
            program = wirewitness(tiny, self._table)
            one, two = (min(self._run(each).wall_s for _ in range(3)) for each in (program, shared_out(program)))
            tiny.unlink()
            self._known_starts = one, two
        return self._known_starts

    def _checked(self, program: Program, check: Check) -> Run:
        run = self._run(program)
        check(program.name, program.found())
        return run

    def _run(self, program: Program) -> Run:
        program.output.unlink(missing_ok=True)
        printed = program.output if program.prints else self._folder / "standard_output.txt"
        return measure(program.command, printed, self._folder / "errors.txt")


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
