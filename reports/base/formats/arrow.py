"""Columns of Arrow, typed loosely: docstrings say what they hold."""

from __future__ import annotations

from typing import Any, TypeAlias

# pyarrow.Array, of strings where nothing else is said.
ArrowColumn: TypeAlias = Any
