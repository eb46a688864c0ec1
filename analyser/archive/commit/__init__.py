"""Raw rows to parts. In: folders of raw rows, and what all shards know together. Out: staged parts of tables."""
