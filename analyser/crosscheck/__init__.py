"""What Wireshark's own dissectors say of the same captures, message by message.

In: an analysis and a tshark program. Out: a `CrossCheck`: what both say alike, where they differ, what only one
decodes.
"""

from analyser.crosscheck.check import TABLES, cross_check
from analyser.crosscheck.result import CrossCheck
from analyser.crosscheck.tshark import Tshark, TsharkError, find_tshark

__all__ = ["TABLES", "CrossCheck", "Tshark", "TsharkError", "cross_check", "find_tshark"]
