"""Many messages of one API and version at once, field by field instead of message by message (lock-step).

In: the frames of one feed. Out: the same rows that `decoder.py` makes of them one by one, for exchanges that are
regular and many; all others it leaves to the decoder. docs/architecture.md explains how.
"""
