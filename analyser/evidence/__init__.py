"""From ids back to bytes: which packets a message, exchange, flow or finding came in, and the bytes of a message."""
