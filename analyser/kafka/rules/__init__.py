"""Rules about Kafka. In: partitions of its tables, mostly of offset commits. Out: findings that name the client."""
