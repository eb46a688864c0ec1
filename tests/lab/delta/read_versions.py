"""Reads Delta tables with Delta's own package; runs where an older Spark is and nothing of this project.

In: a JSON object of `jars`, and of `tables`: a folder -> its versions. Out: a JSON line for each version of each table,
with its columns, and its rows by the folders that they lie in; every value of the last version has been read.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

PARTED_BY = ["protocol", "day", "hour"]


def main(wanted: dict[str, Any]) -> None:
    """See the module's docstring."""
    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars": ",".join(wanted["jars"]),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Rows are counted, not what the log says of them.
        "spark.databricks.delta.optimizeMetadataQuery.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    for table, versions in wanted["tables"].items():
        for version in versions:
            rows = spark.read.format("delta").option("versionAsOf", version).load(table)
            counts = sorted([*map(str, row)] for row in rows.groupBy(*PARTED_BY).count().collect())
            print(json.dumps({"table": table, "version": version, "columns": rows.columns, "counts": counts}))
        rows.write.format("noop").mode("overwrite").save()
    print(json.dumps({"spark": spark.version}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
