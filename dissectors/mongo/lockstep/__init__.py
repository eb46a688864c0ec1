"""Many MongoDB messages in lock-step: see docs/architecture.md, "Many messages at once".

In: frames that many connections left for later. Out: rows in columns of the exchanges that could be read together, and
which frames are left for the decoders. `batch_decode.py` is where to start.
"""
