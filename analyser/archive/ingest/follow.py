"""Following directories and stores: Structured Streaming tells which captures are complete, each batch is one run.

In: what the user named, and what to do with a batch. Out: nothing until it is stopped. What was taken in already is
known by the dataset alone, so a stream that is started again begins with everything and nothing comes twice. `pyspark`
is imported here, so only what runs on Spark imports this module.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from wirewitness.analyser.archive.ingest.arriving import SETTLED_S, check_stores, files_named, is_complete
from wirewitness.analyser.base.storage.address import address_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "wirewitness-captures"
INPUTS, SETTLED = "inputs", "settled"
LOOK_S, LOOK_AT_STORES_S = 2.0, 10.0  # listing a store takes a request for each thousand objects
_WAIT_S = 1


class Files(InputPartition):
    """Files that became complete between two looks."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        super().__init__(0)
        self.paths = paths


class CompleteCaptures(DataSource):
    """A stream with a row for each file that is complete."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "path string"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        return CompleteReader(json.loads(self.options[INPUTS]), float(self.options[SETTLED]))


class CompleteReader(DataSourceStreamReader):
    """Offsets count files in the order in which they were found complete."""

    def __init__(self, inputs: Sequence[str], settled_s: float) -> None:
        self._inputs = inputs
        self._settled_s = settled_s
        self._found: dict[str, None] = {}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  Spark's name
        """Before any file."""
        return {"files": 0}

    def latestOffset(self, *_: Any) -> dict[str, int]:  # noqa: N802  Spark's name
        """After the files that are complete now. Spark 4.2 and newer give a start and a limit."""
        for path in files_named(self._inputs):
            with suppress(OSError):
                if str(path) not in self._found and is_complete(path, self._settled_s):
                    self._found[str(path)] = None
        return {"files": len(self._found)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """One: the names are few."""
        return [Files(tuple(self._found)[start["files"] : end["files"]])]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        """The names."""
        assert isinstance(partition, Files)
        for path in partition.paths:
            yield (path,)


def follow(
    spark: SparkSession,
    inputs: Sequence[str],
    take_in: Callable[[], bool],
    stopped: Callable[[], bool],
    checkpoint: Path,
    settled_s: float = SETTLED_S,
) -> None:
    """Call `take_in` each time that captures became complete, until `stopped` says so; a batch that runs is ended.

    take_in: says whether something is left that it is to try again, after a while. checkpoint: an empty folder for
    Spark's notes. An error of `take_in` ends the stream and is raised. CaptureError for a store that cannot be asked at
    the beginning.
    """
    check_stores(inputs)
    look_s = LOOK_S if all(address_of(str(one)) is None for one in inputs) else LOOK_AT_STORES_S
    errors: list[BaseException] = []

    def batch(files: DataFrame, _: int) -> None:
        if stopped() or files.isEmpty():
            return
        try:
            while take_in() and not stopped():
                time.sleep(look_s)
        except BaseException as error:
            errors.append(error)
            raise

    spark.dataSource.register(CompleteCaptures)
    stream = spark.readStream.format(FORMAT).option(INPUTS, json.dumps([str(one) for one in inputs]))
    writer = stream.option(SETTLED, str(settled_s)).load().writeStream.foreachBatch(batch)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime=f"{look_s} seconds").start()
    try:
        while query.isActive and not stopped():
            query.awaitTermination(_WAIT_S)
        while query.isActive and query.status["isTriggerActive"]:
            query.awaitTermination(_WAIT_S)
    except Exception:
        if not errors:
            raise
    finally:
        query.stop()
    if errors:
        raise errors[0]
