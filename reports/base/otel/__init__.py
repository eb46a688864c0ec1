"""Exchanges as OpenTelemetry spans. In: batches of the exchanges table; out: spans of the SDK, to an endpoint or file.

`spans.spans` is the way in for whoever has batches, of a capture or of a stream of them; `exchanges.batches` adds what
other tables know of each exchange.
"""
