"""Raw rows leave memory. In: tuples from dissectors and flows. Out: sorted Arrow batches, spilled to files past a limit."""
