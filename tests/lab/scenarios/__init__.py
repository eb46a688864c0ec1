"""One module per sample: each drives a broker and clients and returns the facts of its run."""
