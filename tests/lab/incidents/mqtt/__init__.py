"""Incidents of MQTT with real brokers and clients: `python -m tests.lab.incidents.mqtt --output DIR [NAME...]`.

In: names (none: all). Out: DIR/mqtt_NAME-N/ with capture.pcapng and truth.json, as `judge` and `vary` read them.
Broker, client libraries, names and times are drawn at random.
"""
