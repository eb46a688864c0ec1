"""Incidents of MongoDB with real servers and drivers: `python -m tests.lab.incidents.mongo --output DIR [NAME...]`.

By lot an incident is alone, or applications do ordinary work beside it; the server is FerretDB or this project's test
server; the driver pymongo, Node's, Go's or Java's; decoders with the test server are compressed or not.
"""
