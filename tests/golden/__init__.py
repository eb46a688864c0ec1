"""Golden results: what the program says of every sample, kept as one line for each table and document."""
