"""Decoded requests and responses to rows of tables. In: decoded values. Out: tuples in the order of `fields`."""
