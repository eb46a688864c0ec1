"""Notes of a stream: what was taken is known again, batches stay as they are, old notes make way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wirewitness.analyser.archive.ingest.taken import KEPT, LISTED_EVERY, Capture, TakenNotes
from wirewitness.analyser.capture import CaptureError

A = Capture("/captures/a.pcap", "aa", 1)
B = Capture("/captures/b\udce9.pcap", "bb", None)


def notes_of(folder: Path) -> TakenNotes:
    return TakenNotes(str(folder))


def test_what_was_taken_is_known_to_the_next_stream(tmp_path: Path) -> None:
    notes = notes_of(tmp_path / "taken")
    assert (notes.last, notes.knows(A)) == (0, False)
    notes.add([A])
    notes.add([B])
    again = notes_of(tmp_path / "taken")
    assert again.last == 2
    assert [again.batch(1), again.batch(2)] == [[A], [B]]
    assert again.knows(A)
    assert again.knows(B)


@pytest.mark.parametrize(
    ("capture", "known"),
    [
        pytest.param(A._replace(key="ab"), True, id="grown"),
        pytest.param(A._replace(name="/captures/old/a.pcap"), True, id="renamed"),
        pytest.param(A._replace(key="ab", first_ns=2), False, id="name used again"),
        pytest.param(A._replace(name="/captures/c.pcap", key="ab"), False, id="another"),
    ],
)
def test_which_captures_are_the_same(tmp_path: Path, capture: Capture, known: bool) -> None:
    notes = notes_of(tmp_path)
    notes.add([A])
    assert notes.knows(capture) is known


def test_a_second_stream_is_told_to_take_its_own_folder(tmp_path: Path) -> None:
    one, other = notes_of(tmp_path), notes_of(tmp_path)
    one.add([A])
    with pytest.raises(CaptureError, match="is used by another stream: each needs a folder of its own"):
        other.add([B])
    assert notes_of(tmp_path).batch(1) == [A]
    assert [path.name for path in tmp_path.iterdir()] == ["batch-000000000001.json"]


def test_old_notes_make_way_for_a_list(tmp_path: Path) -> None:
    notes = notes_of(tmp_path)
    captures = [Capture(f"/captures/{number}.pcap", f"k{number}", number) for number in range(3 * LISTED_EVERY + 1)]
    for number, capture in enumerate(captures, 1):
        notes.add([capture])
        notes.done_with(number - 1)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len([name for name in names if name.startswith("taken-")]) == 1
    assert KEPT < len(names) <= KEPT + LISTED_EVERY + 2
    again = notes_of(tmp_path)
    assert again.last == len(captures)
    assert all(map(again.knows, captures))
    assert again.batch(again.last) == [captures[-1]]
    with pytest.raises(CaptureError, match="a stream that begins anew needs an empty folder"):
        again.batch(1)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{" * 5000, '{"version": 2, "captures": []}', '{"version": 1}',
     '{"version": 1, "captures": [["a", "b"]]}',
     '{"version": 1, "captures": [["a", "b", true]]}', '{"version": 1, "captures": [[1, "b", 2]]}', "[" * 100_000],
)  # fmt: skip
def test_what_is_no_note_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "batch-000000000001.json").write_text(text)
    with pytest.raises(CaptureError, match="is no note of a stream"):
        notes_of(tmp_path)


@pytest.mark.parametrize("digest", ["zz", "00", 7, None])
def test_what_is_no_list_is_told(tmp_path: Path, digest: object) -> None:
    (tmp_path / "taken-000000000009.json").write_text(json.dumps({"version": 1, "captures": [digest]}))
    with pytest.raises(CaptureError, match="is no list of what a stream has taken"):
        notes_of(tmp_path)


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("ours")
    assert notes_of(tmp_path).last == 0
    (tmp_path / "batch-000000000001.json").mkdir()
    with pytest.raises(CaptureError, match="Is a directory"):
        notes_of(tmp_path)
