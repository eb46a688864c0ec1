"""What people ask about MQTT.

In: a source of tables. Out: SELECTs over registered tables, or small values.
"""
