"""MQTT between tables and findings: facts, and rules over them.

In: views of the registered tables. Out: views with columns added, and findings.
"""
