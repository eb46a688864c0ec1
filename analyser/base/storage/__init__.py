"""Files in object stores, read like files of this machine.

In: addresses such as s3://bucket/one.pcap. Out: objects with their size, as streams or ranges; paths for all else.
"""
