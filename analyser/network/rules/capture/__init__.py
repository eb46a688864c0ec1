"""Rules about the capture itself: what it lacks, and how far the rest can be trusted. In: partitions. Out: findings."""
