"""Where the lab's files are: what belongs to the project, and what is fetched and built for it."""

from __future__ import annotations

from pathlib import Path

LAB_DIR = Path(__file__).parent
WORK_DIR = LAB_DIR / ".work"  # not in version control; `make clean` removes it
