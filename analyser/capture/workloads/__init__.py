"""Who is behind an address or a connection: process, container, pod, host. In: what captures, files or the kernel say.
Out: `Owner` values, and who of them is meant at an address and a time; never a guess.
"""
