"""The log of Mochi as records, and what the scenarios' brokers are given."""

from __future__ import annotations

from pathlib import Path

from tests.lab import mochi, mosquitto
from tests.lab.mosquitto_log import Endpoint, LogEntry

LINE = (
    '{"logged_s":7,"direction":"sent","kind":"PUBLISH","client_id":"page","client":"10.0.0.9:4000",'
    '"fields":{"mid":3,"qos":1,"dup":false,"retain":false,"topic":"","alias":2,"size":1}}\n'
)
PACKET = {"mid": 3, "qos": 1, "dup": False, "retain": False, "topic": "", "alias": 2, "size": 1}


def test_a_line_becomes_an_entry(tmp_path: Path) -> None:
    entry = LogEntry(7, "sent", "PUBLISH", "page", Endpoint("10.0.0.9", 4000), PACKET)
    (tmp_path / "mochi.log").write_text(LINE + LINE.replace('"page"', '""'))
    assert mochi.Mochi().read_logs([tmp_path / "mochi.log"]) == [entry, entry._replace(client_id=None)]


def test_mosquitto_without_users_lets_everybody_in(tmp_path: Path) -> None:
    lines = mosquitto.Mosquitto(settings=("max_keepalive 30",)).configure(tmp_path).read_text().splitlines()
    assert lines[-2:] == ["max_keepalive 30", "allow_anonymous true"]
    assert "log_type all" in lines


def test_the_security_file_holds_no_password() -> None:
    text = mosquitto.security([mosquitto.User("ann", "lab-secret", forbidden=("admin/#",))])
    assert "lab-secret" not in text
    assert text.count("admin/#") == 2  # publishing and subscribing
