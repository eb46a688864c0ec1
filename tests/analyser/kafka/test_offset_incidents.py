"""What captures of known truth say about offsets and replication: culprits that must be named, and nobody else."""

from __future__ import annotations

import re

import pytest

import wirewitness
from tests.conftest import KNOWN_INCIDENTS

CASES = [
    pytest.param(
        "h02_out_of_range_twice", "KAF121", r"clicks-0.*4,505|4,505.*clicks-0", "by itself|KAF120",
        id="records are removed while the reader asks where the log starts",
    ),
    pytest.param(
        "h03_unclean_election", "KAF320", r"events3-0 was truncated at 547.*broker 3.*unclean.*359", "by itself",
        id="an unclean election",
    ),
    pytest.param(
        "h11c_acks_all_slow_acks_1_fast", "KAF319", r"safe-writer.*ledger5-0", "fast-writer", id="acks=all waits"
    ),
    pytest.param("h14a_slow_low_rate", "KAF108", r"Group render.*pdf-0.*render-1.*handler", "pdf-idx-1",
                 id="a slow handler behind quick fetches"),
    pytest.param(
        "h15h_reset_overwritten_by_live_job", "KAF103", r"adminclient-1.*was lost. It was overwritten 1\.3 s later",
        "449 messages are", id="a reset that a live job overwrites",
    ),
]  # fmt: skip


@pytest.mark.skipif(not KNOWN_INCIDENTS.is_dir(), reason="the folder ../shared/incidents is not there")
@pytest.mark.parametrize(("capture", "code", "said", "unsaid"), CASES)
def test_the_culprit_is_named_and_nobody_else(capture: str, code: str, said: str, unsaid: str) -> None:
    (path,) = KNOWN_INCIDENTS.glob(f"{capture}.pcap*")
    rows = wirewitness.read(path).findings().to_dict("records")
    assert any(row["code"] == code and re.search(said, row["sentence"]) for row in rows)
    assert [row["sentence"] for row in rows if re.search(unsaid, f"{row['code']} {row['sentence']}")] == []
