"""Raw rows leave memory. In: tuples from dissectors and flows. Out: Arrow batches in the order of time.

A fixed amount of memory: past a limit rows are spilled to files.
"""
