"""Captures to raw rows on Spark. In: ranges of files. Out: a folder of raw rows for each shard of the flows."""
