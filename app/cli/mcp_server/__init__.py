"""An analysis for programs that ask questions (Model Context Protocol).

In: an open analysis, and requests on standard input. Out: bounded answers on standard output; nothing is ever changed.
"""
