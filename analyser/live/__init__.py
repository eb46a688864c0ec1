"""Captures that have no end: packets come while they are decoded.

In: messages of the program that captures (`analyser/capture/capturing.py`), or a stream of pcap. Out: rows that leave
memory when they are old, findings as they appear, and at the end what `analyser.read` would give.
"""
