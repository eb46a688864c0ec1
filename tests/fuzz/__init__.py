"""Fuzz targets: what may come from outside, fed with mutated bytes. See each file for how to run it."""
