"""What protocols share that read many messages at once, see docs/architecture.md, "Many messages at once".

In: frames that many decoders left for later. Out: the same in numpy columns. Nothing else in `core` knows numpy.
"""
