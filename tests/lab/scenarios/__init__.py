"""A folder per protocol, in it one module per sample: each drives a server and clients and returns its run's facts."""
