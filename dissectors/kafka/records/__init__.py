"""Record data. In: bytes of a `records` field. Out: batches, records, and what Kafka keeps in its own topics."""
