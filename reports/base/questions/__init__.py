"""What people ask of an analysis. In: a source. Out: SELECTs over registered tables, or small values.

Command line, report, dashboard and datasets ask the same questions here.
"""
