"""The identities of this machine's connections (Linux). In: the two ends of a connection, while it is open.

Out: which process holds it, of which user, in which container and pod: as far as the kernel says so, and no guess.
"""
