"""What people ask about MongoDB.

In: a source of tables. Out: SELECTs over registered tables, or small values.
"""
