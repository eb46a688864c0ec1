"""Facts of MQTT: sessions, deliveries, messages missed while a client was away.

In: a connection with views of the decoded tables. Out: columns added to them, and tables of their own.
"""
