"""Files in object stores, named by an address such as s3://bucket/one.pcap, read like files of this machine."""
