"""Secrets in columns of finished tables, whether their texts are codes or not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wirewitness.analyser.analysis.masking import masked_column
from wirewitness.analyser.tables.tables import TABLES

TEXTS = ["refused: password=hunter2 is wrong", None, "not authorised"] * 3


def test_codes_are_masked_as_texts_are() -> None:
    column = TABLES["messages"].column("summary")
    found = masked_column("messages", column, pa.array(TEXTS))
    assert "hunter2" not in str(found.to_pylist())
    assert found.to_pylist()[1:3] == TEXTS[1:3]
    coded = masked_column("messages", column, pa.array(TEXTS).dictionary_encode())
    assert (pa.types.is_dictionary(coded.type), coded.to_pylist()) == (True, found.to_pylist())


@pytest.mark.parametrize("others", [0, 50, 5_000], ids=["few", "repeated", "many"])
@pytest.mark.parametrize("repeats", [1, 40])
def test_one_secret_is_found_among_however_many_texts(others: int, repeats: int) -> None:
    texts = [*(f"topic-{number}" for number in range(others)), *TEXTS] * repeats
    found = masked_column("messages", TABLES["messages"].column("summary"), pa.array(texts)).to_pylist()
    assert [text for text in found if text in TEXTS] == [text for text in texts if text != TEXTS[0] and text in TEXTS]
    assert sum("***" in (text or "") for text in found) == 3 * repeats
    assert found[:others] == texts[:others]


def test_a_column_without_texts_stays_as_it_is() -> None:
    empty = pa.nulls(3, pa.string())
    assert masked_column("messages", TABLES["messages"].column("summary"), empty) is empty


OPAQUE = "refused q7Zk2Lp9XvB4nM1sT8wR3yU6"


@pytest.mark.parametrize(
    ("table", "name", "text", "shown", "opened"),
    [
        ("mqtt_connections", "user_name", "ada", "***4f65", "ada"),
        ("mqtt_connections", "user_name", "", "", ""),
        ("kafka_request_times", "principal", "User:ada", "User:***4f65", "User:ada"),
        ("kafka_request_times", "principal", "User:ANONYMOUS", "User:ANONYMOUS", "User:ANONYMOUS"),
        ("mqtt_connections", "reason_string", "shift is over", "***", "shift is over"),
        ("mqtt_publishes", "user_properties", '[["unit", "K"], ["", ""]]', '[["unit", "***"], ["", ""]]', None),
        ("mqtt_publishes", "user_properties", "no list", "***", "no list"),
        ("kafka_group_events", "reason", "the consumer is being closed", "the consumer is being closed", None),
        ("kafka_group_events", "reason", "because I say so", "***", "because I say so"),
        ("kafka_authentications", "error_message", "no such user ada", "***", "no such user ada"),
        ("kafka_authentications", "error_message", "Authentication failed: Invalid username or password",
         "Authentication failed: Invalid username or password", None),
        ("kafka_admin_changes", "error_message", "no such user ada", "no such user ada", None),
        ("kafka_admin_changes", "error_message", OPAQUE, "refused ***", "refused ***"),
        ("exchanges", "client_id", OPAQUE, OPAQUE, OPAQUE),
        ("kafka_group_events", "member_id", "kQ1x9DbtQeG5B3rAqD6dAg", "kQ1x9DbtQeG5B3rAqD6dAg", None),
        ("flows", "sni", "kafka-0.example.com", "kafka-0.example.com", None),
    ],
)  # fmt: skip
def test_what_a_column_holds_decides(table: str, name: str, text: str, shown: str, opened: str | None) -> None:
    """opened: with --payload; None for the same as by default, or for JSON as it is."""
    column, texts = TABLES[table].column(name), pa.array([text, None])
    assert masked_column(table, column, texts).to_pylist() == [shown, None]
    assert masked_column(table, column, texts, opens=True).to_pylist() == [opened or text, None]
