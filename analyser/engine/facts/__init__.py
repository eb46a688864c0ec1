"""The context stage: what a row can only know from other rows of the capture.

In: a DuckDB connection with views of the registered tables. Out: clusters of flows, names of topic ids, and the context
columns of commits and fetches (owner, log end, group), so that a rule needs nothing outside its partition.
"""
