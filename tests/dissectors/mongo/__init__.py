"""Tests of dissectors/mongo."""
