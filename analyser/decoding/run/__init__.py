"""Captures to decoded rows. In: opened captures. Out: `Decoded`, the raw rows of all wanted tables.

One process does it, or several that shard out the flows.
"""
