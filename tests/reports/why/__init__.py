"""Tests of chains of causes."""
