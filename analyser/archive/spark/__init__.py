"""Spark itself. In: settings. Out: a session with our code on its workers, tasks, and faults as sentences."""
