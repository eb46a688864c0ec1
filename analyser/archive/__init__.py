"""Archives: months of captures as one dataset. In: captures, again and again. Out: Parquet files that keep every table.

`run` goes through the stages. Nothing outside this folder imports Spark.
"""
