"""Programs import pandas when it is needed, not because pyarrow looks for it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later
import_pandas_later()
import pyarrow as pa, wirewitness.analyser.inputs
assert "pandas" not in sys.modules, "imported although nobody needs it"
frame = pa.table({"a": [1, None]}).to_pandas()
import pandas
assert isinstance(frame, pandas.DataFrame)
assert pa.array(pandas.Series([1.5, None])).null_count == 1
import_pandas_later()
assert pa.Table.from_pandas(frame).num_rows == 2
"""


def test_pandas_comes_when_it_is_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
