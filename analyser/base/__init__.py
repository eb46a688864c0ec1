"""What everything else may use: options, times, severities, faults, own files, storage.

In: nothing of the project but the dissectors' core. Out: values and helpers without any knowledge of captures, tables
or protocols.
"""
