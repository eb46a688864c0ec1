"""`python -m tests.lab.incidents --list | NAME... --output DIR`; `vary DIR`; `judge DIR`; `expect DIR`."""

from __future__ import annotations

import sys

from tests.lab.incidents import run

if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["vary"]:
        from tests.lab.incidents import vary

        sys.exit(vary.main(words[1:]))
    if words[:1] == ["judge"]:
        from tests.lab.incidents import judge

        sys.exit(judge.main(words[1:]))
    if words[:1] == ["expect"]:
        from tests.lab.incidents import expect

        sys.exit(expect.main(words[1:]))
    sys.exit(run.main(words))
