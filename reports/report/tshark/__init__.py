"""What Wireshark's own dissectors say of the same captures, message by message.

In: an analysis and a tshark program. Out: a `CrossCheck`: what both say alike, where they differ, what only one
decodes.
"""

from wirewitness.reports.report.tshark.check import TABLES, cross_check
from wirewitness.reports.report.tshark.result import CrossCheck
from wirewitness.reports.report.tshark.tshark import Tshark, TsharkError, find_tshark

__all__ = ["TABLES", "CrossCheck", "Tshark", "TsharkError", "cross_check", "find_tshark"]
