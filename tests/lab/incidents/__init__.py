"""Incidents: faults put into healthy traffic of a real broker and real clients, with what really happened beside each.

In: names of incidents. Out: a folder each with capture.pcapng and truth.json. `python -m tests.lab.incidents --help`.
"""
