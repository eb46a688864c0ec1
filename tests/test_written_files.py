"""Files of names that a user gives: nobody leads a writer elsewhere, nobody else reads them, none is there by half."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.program import COMMAND, environment, run
from tests.conftest import IMPORT_PATH, SAMPLES
from wirewitness.analyser.archive.spark.code_zip import pack_for_submit
from wirewitness.analyser.base.written_files import Refused, begun, filled, place_of, written

SAMPLE = str(SAMPLES / "mqtt_takeover_loop.pcapng")
OTHER, US = 4321, 4322
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
Write = Callable[[str], None]


def whole(name: str) -> None:
    with written(name) as file:
        file.write(b"new")


def growing(name: str) -> None:
    with begun(name) as file:
        file.write(b"new")


WRITERS = pytest.mark.parametrize("write", [whole, growing])


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder such as /tmp: all may write there, and nobody may remove what is somebody else's."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def as_user(user: int, action: Callable[[], None]) -> str:
    """What a process of this user, root in nothing any more, says in the end: empty, or why it was refused."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            try:
                action()
            except OSError as error:
                os.write(writer, (error.strerror or "?").encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with open(reader, "rb") as pipe:
        return pipe.read().decode()


@WRITERS
def test_a_new_file_is_its_users_alone_whatever_the_umask(write: Write, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write(str(tmp_path / "report"))
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "report") == 0o600
    assert os.listdir(tmp_path) == ["report"]


@WRITERS
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640, 0o4755])
def test_a_file_that_is_replaced_hands_its_mode_on(write: Write, mode: int, tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.write_text("old")
    target.chmod(mode)
    write(str(target))
    assert (target.read_text(), mode_of(target)) == ("new", mode & 0o777)


@WRITERS
def test_what_another_name_of_the_old_file_holds_stays(write: Write, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("old")
    (tmp_path / "other name").hardlink_to(tmp_path / "report")
    (tmp_path / "report").chmod(0o644)
    write(str(tmp_path / "report"))
    assert (tmp_path / "other name").read_text() == "old"
    assert mode_of(tmp_path / "report") == 0o600


@WRITERS
@pytest.mark.parametrize("target", ["real", "../folder/real", "/{}/real", "via/real"])
def test_links_of_ones_own_are_followed(write: Write, target: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "via").symlink_to(".")
    (folder / "link").symlink_to(target.format(folder))
    write(str(folder / "link"))
    assert (folder / "link").is_symlink()
    assert (folder / "real").read_text() == "new"


@WRITERS
def test_links_that_lead_in_a_circle_are_refused(write: Write, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(Refused, match="circle"):
        write(str(tmp_path / "a"))


@ROOT_ONLY
@WRITERS
@pytest.mark.parametrize("planted", ["report", "folder"])
def test_links_of_others_are_refused_wherever_they_are(
    write: Write, planted: str, shared: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "report").write_text("old")
    name = shared / planted / "report" if planted == "folder" else shared / planted
    (shared / planted).symlink_to(secret if planted == "folder" else secret / "report")
    os.lchown(shared / planted, OTHER, OTHER)
    for mode in (0o1777, 0o755):
        shared.chmod(mode)
        with pytest.raises(Refused, match="is a link of somebody else"):
            write(str(name))
    assert (secret / "report").read_text() == "old"
    assert os.listdir(secret) == ["report"]


@ROOT_ONLY
@WRITERS
def test_links_of_whoever_called_sudo_are_followed(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("real")
    os.lchown(tmp_path / "link", OTHER, OTHER)
    with pytest.raises(Refused):
        write(str(tmp_path / "link"))
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    write(str(tmp_path / "link"))
    assert (tmp_path / "real").read_text() == "new"


@ROOT_ONLY
@WRITERS
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_files_and_pipes_of_others_in_a_shared_folder_are_refused(write: Write, kind: str, shared: Path) -> None:
    target = shared / "report"
    if kind == "file":
        target.write_text("theirs")
    else:
        os.mkfifo(target)
    target.chmod(0o666)
    os.chown(target, OTHER, OTHER)
    with pytest.raises(Refused, match="somebody else's, in a folder where all may write"):
        write(str(target))
    assert target.lstat().st_uid == OTHER


@ROOT_ONLY
@WRITERS
def test_a_user_writes_in_folders_of_their_own_and_not_over_others(write: Write, shared: Path) -> None:
    shared.parent.chmod(0o755)
    for folder in [*shared.parents][: len(shared.parents) - 2]:
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    own = shared / "own"
    own.mkdir()
    os.chown(own, US, US)
    (shared / "theirs").write_text("theirs")
    (shared / "theirs").chmod(0o666)
    os.chown(shared / "theirs", OTHER, OTHER)
    (shared / "link").symlink_to(own / "a")
    os.lchown(shared / "link", OTHER, OTHER)
    assert as_user(US, lambda: write(str(own / "a"))) == ""
    assert as_user(US, lambda: write(str(shared / "b"))) == ""
    assert (
        as_user(US, lambda: write(str(shared / "theirs"))) == "that is somebody else's, in a folder where all may write"
    )
    assert "is a link of somebody else" in as_user(US, lambda: write(str(shared / "link")))
    assert [(path.stat().st_uid, mode_of(path)) for path in (own / "a", shared / "b")] == [(US, 0o600)] * 2
    assert (shared / "theirs").read_text() == "theirs"


@WRITERS
def test_a_pipe_that_is_named_on_purpose_is_written_to(write: Write, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write(str(tmp_path / "pipe"))
    reader.join(60)
    assert got == [b"new"]
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)


@WRITERS
def test_devices_are_written_to_and_stay(write: Write) -> None:
    write("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@WRITERS
def test_what_is_no_file_is_refused(write: Write, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
        with pytest.raises(Refused, match="no file, no pipe and no device"):
            write(str(tmp_path / "socket"))
    with pytest.raises(Refused, match="directory"):
        write(str(tmp_path))
    with pytest.raises(Refused, match="there is no directory"):
        write(str(tmp_path / "missing" / "report"))


def test_a_name_of_our_own_choice_takes_nobodys_place(tmp_path: Path) -> None:
    (tmp_path / "ring-1").symlink_to("elsewhere")
    (tmp_path / "ring-2").write_text("theirs")
    for name in ("ring-1", "ring-2"):
        with pytest.raises(FileExistsError):
            begun(str(tmp_path / name), new=True)
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_put_in_the_way_meanwhile_is_replaced_and_not_followed(tmp_path: Path) -> None:
    with written(str(tmp_path / "report")) as file:
        (tmp_path / "report").symlink_to("secret")
        file.write(b"new")
    assert not (tmp_path / "secret").exists()
    assert (tmp_path / "report").read_text() == "new"
    assert not (tmp_path / "report").is_symlink()


def test_a_folder_that_is_swapped_meanwhile_keeps_the_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "secret").mkdir()
    with written(str(tmp_path / "folder" / "report")) as file:
        file.write(b"new")
        (tmp_path / "folder").rename(tmp_path / "moved")
        (tmp_path / "folder").symlink_to("secret")
    assert os.listdir(tmp_path / "secret") == []
    assert (tmp_path / "moved" / "report").read_text() == "new"


KILLED = """
import sys
from wirewitness.analyser.base.written_files import written
with written(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("made", flush=True)
    sys.stdin.readline()
"""


def test_a_writer_that_is_killed_leaves_no_half_file_of_that_name(tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.write_text("old")
    words = [sys.executable, "-c", KILLED, str(target)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": IMPORT_PATH}
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"made\n"
        writer.send_signal(signal.SIGKILL)
    assert target.read_text() == "old"
    assert len(os.listdir(tmp_path)) == 2
    whole(str(target))
    assert os.listdir(tmp_path) == ["report"]
    assert target.read_text() == "new"


# Commands that write a file of a name that the user gives.
COMMANDS: dict[str, list[str]] = {
    "report": ["analyse", SAMPLE, "--format", "json", "--output"],
    "page": ["analyse", SAMPLE, "--format", "html", "--output"],
    "rows": ["table", "flows", SAMPLE, "--format", "csv", "--output"],
    "parquet": ["table", "flows", SAMPLE, "--format", "parquet", "--output"],
    "query": ["query", SAMPLE, "select 1 as one", "--format", "parquet", "--output"],
    "packets": ["extract", SAMPLE, "--flow", "00185529e730e16c", "--output"],
    "junit": ["expect", "mqtt-client", SAMPLE, "--junit"],
    "review": ["findings", SAMPLE, "--accept", "MQT102", "--note", "known", "--review"],
    "spans": ["otel", SAMPLE, "--output"],
    "difference": ["compare", SAMPLE, SAMPLE, "--output"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_writes_so(name: str, tmp_path: Path, shared: Path) -> None:
    words = COMMANDS[name]
    before = os.umask(0)
    try:
        done = run(*words, str(tmp_path / "out"))
    finally:
        os.umask(before)
    assert (tmp_path / "out").exists(), done.stderr
    assert mode_of(tmp_path / "out") == 0o600
    assert (tmp_path / "out").stat().st_size > 0
    if os.geteuid() == 0:
        (shared / "link").symlink_to(tmp_path / "secret")
        os.lchown(shared / "link", OTHER, OTHER)
        refused = run(*words, str(shared / "link"))
        assert (refused.returncode, refused.stdout, refused.stderr.count(b"\n")) == (2, b"", 1), refused.stderr
        assert b"is a link of somebody else" in refused.stderr
        assert not (tmp_path / "secret").exists()


def test_standard_output_by_its_name_is_a_pipe_like_any(tmp_path: Path) -> None:
    words = [*COMMAND, "table", "flows", SAMPLE, "--format", "jsonl", "--output", "/dev/stdout"]
    done = subprocess.run(words, capture_output=True, env=environment(), cwd=tmp_path, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout.splitlines()[0])["flow_id"]
    assert os.listdir(tmp_path) == []


def test_where_a_name_leads_is_what_the_system_says(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "link").symlink_to("deep/er")
    for name in ("link/../report", "./link/report", "deep//er/../../report", "link/../../report"):
        (tmp_path / name).touch()
        place = place_of(str(tmp_path / name))
        assert place.path.samefile(tmp_path / name)
        assert str(place.path) == os.path.realpath(tmp_path / name)


def test_a_folder_is_its_users_alone_and_takes_no_place_of_others(tmp_path: Path) -> None:
    with filled(str(tmp_path / "rows")) as folder:
        (folder / "one").write_text("x")
        assert not (tmp_path / "rows").exists()
    assert mode_of(tmp_path / "rows") == 0o700
    with pytest.raises(OSError, match="not empty"), filled(str(tmp_path / "rows")):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["rows"]
    assert (tmp_path / "rows" / "one").read_text() == "x"


@ROOT_ONLY
def test_no_folder_is_made_behind_a_link_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.lchown(tmp_path / "link", OTHER, OTHER)
    with pytest.raises(Refused, match="link of somebody else"), filled(str(tmp_path / "link" / "rows")):
        pass
    with pytest.raises(Refused, match="link of somebody else"):
        pack_for_submit(tmp_path / "link" / "packed")
    assert not list((tmp_path / "real").iterdir())


def test_what_is_packed_for_spark_is_its_users_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("stays")
    (tmp_path / "wirewitness.zip").hardlink_to(tmp_path / "elsewhere")
    for path in pack_for_submit(tmp_path):
        assert mode_of(path) == 0o600
    assert (tmp_path / "elsewhere").read_text() == "stays"
