"""Which files a run takes in, in which order, and what it says of the others."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.analyser.decoding.run.test_logs import asks
from tests.support.packets import Captured, ethernet, ipv4, pcap, tcp
from wirewitness.analyser.archive.dataset.manifest import InputFile, Manifest
from wirewitness.analyser.archive.ingest.plan import Plan, plan_files

PACKET = ethernet(ipv4(tcp(b"x", destination_port=9092)))


def write(path: Path, first_ns: int, count: int = 3) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pcap([Captured(first_ns + number * 1000, PACKET) for number in range(count)], nanoseconds=True))
    return path


def held(plan: Plan) -> Manifest:
    """A dataset that has taken the plan's files in."""
    return Manifest(
        inputs=tuple(
            InputFile(one.source.name, one.key, one.size, 3, one.source.first_ns, None, "read", None, "000001")
            for one in plan.files
        )
    )


def names(plan: Plan) -> list[str]:
    return [one.path.name for one in plan.files]


def reasons(plan: Plan) -> list[str]:
    return [one.reason or "" for one in plan.aside]


def test_files_come_in_the_order_of_time_whatever_their_names_are(tmp_path: Path) -> None:
    write(tmp_path / "a" / "z.pcap", 1000)
    write(tmp_path / "b.pcap", 5000)
    write(tmp_path / "c.pcap", 3000)
    plan = plan_files([tmp_path, tmp_path / "b.pcap"], None, "000001")
    assert names(plan) == ["z.pcap", "c.pcap", "b.pcap"]
    assert [one.number for one in plan.files] == [0, 1, 2]
    assert names(plan_files([str(tmp_path / "*.pcap")], None, "000001")) == ["c.pcap", "b.pcap"]


def test_what_is_in_already_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "a.pcap", 1000)
    before = held(plan_files([tmp_path], None, "000001"))
    write(tmp_path / "b.pcap", 5000)
    plan = plan_files([tmp_path], before, "000002")
    assert (names(plan), plan.known, plan.aside) == (["b.pcap"], 1, [])
    assert plan.files[0].number == 1


@pytest.mark.parametrize(
    ("name", "first_ns", "count", "sentence"),
    [
        pytest.param("copy.pcap", 4000, 3, "has the same content as", id="the same content"),
        pytest.param("early.pcap", 1000, 3, "begins before what the dataset already holds", id="earlier"),
        pytest.param("a.pcap", 4000, 9, "has changed since it was taken in", id="grown"),
    ],
)
def test_what_cannot_be_taken_in_any_more_is_set_aside(
    name: str, first_ns: int, count: int, sentence: str, tmp_path: Path
) -> None:
    write(tmp_path / "a.pcap", 4000)
    before = held(plan_files([tmp_path], None, "000001"))
    path = write(tmp_path / name, first_ns, count)
    plan = plan_files([path], before, "000002")
    assert plan.files == []
    assert [path.name in reason and sentence in reason for reason in reasons(plan)] == [True]


def test_inputs_without_captures_are_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.pcap").write_text("no capture")
    good = write(tmp_path / "good.pcap", 1000)
    plan = plan_files([tmp_path / "empty", tmp_path / "text.pcap", tmp_path / "gone.pcap", "-", good], None, "000001")
    assert names(plan) == ["good.pcap"]
    found = dict(zip([Path(one.path).name for one in plan.aside], reasons(plan), strict=True))
    assert {name: reason.split(": ", 1)[-1] for name, reason in found.items()} == {
        "empty": f"{tmp_path / 'empty'} is a directory without captures.",
        "text.pcap": "it starts with the text 'no capture'.",
        "gone.pcap": "no such file or directory.",
        "-": "- can be read once only; an archive takes files.",
    }


def log(path: Path, *numbers: int, packed: bool = False) -> Path:
    """A request log with these requests."""
    text = "".join(asks(number, 1000 * number) for number in numbers).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


def logs_held(plan: Plan) -> Manifest:
    return Manifest(
        inputs=tuple(
            InputFile(one.source.name, one.key, one.size, 0, one.source.first_ns, None, "read", None, "000001", "log",
                      begins=one.source.begins)
            for one in plan.files
        )
    )  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
def test_logs_that_rotation_renames_are_known_and_the_next_one_is_taken(packed: bool, tmp_path: Path) -> None:
    """request.log.1 becomes request.log.2(.gz), and what was written since is request.log.1."""
    log(tmp_path / "request.log.1", 1, 2)
    before = logs_held(plan_files([tmp_path], None, "000001"))
    (tmp_path / "request.log.1").unlink()
    log(tmp_path / ("request.log.2.gz" if packed else "request.log.2"), 1, 2, packed=packed)
    log(tmp_path / "request.log.1", 3, 4)
    plan = plan_files([tmp_path], before, "000002")
    assert (names(plan), plan.known, plan.aside) == (["request.log.1"], 1, [])
    again = plan_files([tmp_path], Manifest(inputs=(*before.inputs, *logs_held(plan).inputs)), "000003")
    assert (names(again), again.known, again.aside) == ([], 2, [])


def test_a_log_that_grew_is_set_aside_whatever_it_is_called_now(tmp_path: Path) -> None:
    log(tmp_path / "request.log", 1, 2)
    before = logs_held(plan_files([tmp_path], None, "000001"))
    (tmp_path / "request.log").unlink()
    for name, said in (("request.log", "has changed since it was taken in;"),
                       ("request.log.1", "has changed since it was taken in, as")):  # fmt: skip
        path = log(tmp_path / name, 1, 2, 3)
        plan = plan_files([path], before, "000002")
        assert plan.files == []
        assert [said in reason for reason in reasons(plan)] == [True]


def test_a_log_that_is_cut_in_place_begins_anew(tmp_path: Path) -> None:
    """As logrotate does with copytruncate: the name stays."""
    log(tmp_path / "request.log", 1, 2)
    before = logs_held(plan_files([tmp_path], None, "000001"))
    log(tmp_path / "request.log", 3, 4)
    assert names(plan_files([tmp_path], before, "000002")) == ["request.log"]


def test_a_log_and_its_compressed_copy_are_one(tmp_path: Path) -> None:
    log(tmp_path / "request.log", 1, 2)
    log(tmp_path / "request.log.gz", 1, 2, packed=True)
    plan = plan_files([tmp_path], None, "000001")
    assert len(plan.files) == 1
