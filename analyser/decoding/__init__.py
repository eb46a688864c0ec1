"""Streams to raw rows. In: the runs and gaps of a flow. Out: rows of messages, exchanges and dissectors in a `Sink`."""
