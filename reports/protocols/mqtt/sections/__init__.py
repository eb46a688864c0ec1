"""Sections of the report about MQTT.

In: answers to questions. Out: sections.
"""
