"""Causes of `why` that MQTT has.

In: a source and a subject. Out: causes.
"""
