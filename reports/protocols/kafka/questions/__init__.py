"""What people ask about Kafka.

In: a source of tables. Out: SELECTs over registered tables, or small values.
"""
