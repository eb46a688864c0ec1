"""Bytes that are made up, fed to every level of the product; docs/fuzzing.md tells how, `levels.py` which."""
