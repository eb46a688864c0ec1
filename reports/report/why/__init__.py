"""Why something is as it is: chains of causes, backwards.

In: a source and a subject (a partition of a group, a finding, an exchange, a message). Out: links, each with its time,
its packets and the rows it rests on.
"""
