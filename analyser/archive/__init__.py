"""Archives: months of captures as one dataset of Parquet files. Only modules that run on Spark import it."""
