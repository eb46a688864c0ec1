"""Many MQTT packets in lock-step: see docs/architecture.md, "Many messages at once".

In: frames that many connections left for later. Out: how many of each could be read together, their rows in columns,
and what the connection knows afterwards. `batch_decode.py` is where to start.
"""
