"""Rules about TCP: loss, waits, resets, handshakes. In: partitions of flows and waits. Out: findings."""
