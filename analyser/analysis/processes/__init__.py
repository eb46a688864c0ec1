"""Rules dealt out to several processes. In: tables as they are finished, helpers that have decoded. Out: the rows of
findings, and what could not be looked at, as one process gives them.
"""
