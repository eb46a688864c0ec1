"""Captures to decoded rows. In: opened captures. Out: `Decoded`, the raw rows of all wanted tables, by one or more processes."""
