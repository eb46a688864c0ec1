"""Bytes to messages to exchanges: one folder per protocol, no tables, no input or output.

The words used here (frame, message, exchange, decoder, ...) are explained in docs/words.md.
"""
