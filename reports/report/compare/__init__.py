"""Two sources side by side, or one before and after.

In: two sources. Out: what differs, ranked.
"""
