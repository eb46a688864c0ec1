"""From ids back to bytes. In: ids of messages, exchanges, flows, findings. Out: the packets they came in, their bytes.

Packets are read from the captures again, only those that are needed.
"""
