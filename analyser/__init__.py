"""Captures in, findings out."""
