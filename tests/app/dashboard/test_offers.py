"""What names a capture in an address, and whose uploads are whose."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.app.captures import write_capture
from wirewitness.app.dashboard.jobs import key_of
from wirewitness.app.dashboard.offers import Uploads, content_id, given_offer
from wirewitness.app.dashboard.opened import Opened
from wirewitness.app.dashboard.worker import keep_tables


def test_the_same_files_have_the_same_name_wherever_they_lie(tmp_path: Path) -> None:
    one, two = write_capture(tmp_path / "a.pcap"), write_capture(tmp_path / "b.pcap", exchanges=4)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in (one, two):
        shutil.copy(path, elsewhere / f"copy-of-{path.name}")
    copies = sorted(elsewhere.iterdir())
    assert content_id([str(one)]) == content_id([str(copies[0])])
    assert content_id([str(one), str(two)]) == content_id([str(copies[1]), str(copies[0])])
    assert len({content_id([str(one)]), content_id([str(two)]), content_id([str(one), str(two)])}) == 3
    assert content_id([str(tmp_path)]) != content_id([str(elsewhere)])
    assert given_offer([str(tmp_path / "gone.pcap")], {}).id != given_offer([str(tmp_path / "lost.pcap")], {}).id


def test_what_an_address_says_of_one_copy_holds_for_another(tmp_path: Path) -> None:
    """Messages and connections are named by content as well."""
    named = []
    for name in ("a.pcap", "b.pcap"):
        path = write_capture(tmp_path / name)
        source = Opened.kept(keep_tables([str(path)], {}, key_of([str(path)], {})))
        named.append(
            source.sql("SELECT exchange_id, request_message_id, flow_id FROM exchanges ORDER BY ts").to_pylist()
        )
    assert named[0]
    assert named[0] == named[1]


def test_an_upload_is_for_who_uploaded_it(tmp_path: Path) -> None:
    content = memoryview(write_capture(tmp_path / "own.pcap").read_bytes())
    uploads = Uploads()
    try:
        mine = uploads.add("own.pcap", content, "me")
        assert [offer.id for offer in uploads.offers("me")] == [mine.id]
        assert uploads.offers("you") == []
        yours = uploads.add("named otherwise.pcap", content, "you")
        assert yours.id == mine.id == content_id([str(tmp_path / "own.pcap")])
        assert [offer.title for offer in uploads.offers("me")] == ["own.pcap"]
        assert [offer.title for offer in uploads.offers("you")] == ["named otherwise.pcap"]
        uploads.drop("you", yours.id)
        assert Path(mine.paths[0]).exists()
        assert not Path(yours.paths[0]).exists()
    finally:
        uploads.close()
