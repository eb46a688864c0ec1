"""`make golden`: has any answer changed since it was accepted? `make golden-accept`: all answers are accepted.

In: the samples, `expected.tsv`. Out: what differs, line by line against the commit that the answers were accepted in;
exit status 1 where something does. A change of structure has to leave everything equal; a change of an answer is read
here, and told in the commit that brings the new `expected.tsv`.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from tests.conftest import ROOT
from tests.golden.things import Result, results, samples, things

EXPECTED = Path(__file__).with_name("expected.tsv")
_SHOWN_LINES = 40
Key = tuple[str, str]


def main() -> int:
    """The exit status."""
    asked = _arguments()
    os.chdir(ROOT)
    if asked.dump:
        return _dump(asked.dump)
    chosen = [name for name in samples() if not asked.only or any(word in name for word in asked.only)]
    got = _results(chosen, asked.jobs)
    if asked.accept:
        others = {key: result for key, result in _read().items() if key[0] not in chosen} if asked.only else {}
        _write({**others, **got})
        print(f"accepted: {len(got)} results of {len(chosen)} samples")
        return 0
    expected = {key: result for key, result in _read().items() if key[0] in set(chosen) or not asked.only}
    changed = sorted(key for key in expected.keys() | got.keys() if expected.get(key) != got.get(key))
    print(
        f"{len(got) - len([key for key in changed if key in got])} of {len(got)} results of {len(chosen)} samples equal"
    )
    for line in _differences(changed, expected, got, asked.lines):
        print(line)
    return 1 if changed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__.partition("\n")[0])
    parser.add_argument("only", nargs="*", help="words: samples whose names have one of them (default: all)")
    parser.add_argument("--accept", action="store_true", help="write the results of now as the expected ones")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--lines", type=int, default=_SHOWN_LINES, help="lines shown of each difference (default: 40)")
    parser.add_argument("--dump", nargs=2, metavar=("SAMPLE", "THING"), help="print one thing of a sample")
    return parser.parse_args()


def _results(chosen: Iterable[str], jobs: int) -> dict[Key, Result]:
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return {(one.sample, one.thing): one for found in pool.map(results, chosen) for one in found}


def _read() -> dict[Key, Result]:
    lines = EXPECTED.read_text().splitlines() if EXPECTED.exists() else []
    found = (
        Result(sample, thing, int(count), made) for sample, thing, count, made in (one.split("\t") for one in lines)
    )
    return {(one.sample, one.thing): one for one in found}


def _write(found: Mapping[Key, Result]) -> None:
    EXPECTED.write_text("".join("\t".join(map(str, one)) + "\n" for _, one in sorted(found.items())))


def _dump(asked: tuple[str, str]) -> int:
    sample, thing = asked
    for name, lines in things(sample):
        if name == thing:
            sys.stdout.writelines(f"{line}\n" for line in lines)
            return 0
    return 1


def _differences(
    changed: Sequence[Key], expected: Mapping[Key, Result], got: Mapping[Key, Result], most: int
) -> Iterator[str]:
    """What changed, thing by thing; the accepted lines come from a checkout of the commit that accepted them."""
    if not changed:
        return
    with _accepted() as accepted:
        for key in changed:
            before, after = expected.get(key), got.get(key)
            yield f"\n{key[0]}  {key[1]}: {_count(before)} -> {_count(after)}"
            if accepted is not None and before and after:
                lines = difflib.unified_diff(_lines(accepted, key), _lines(ROOT, key), lineterm="", n=0)
                shown = [line[:500] for line in lines if not line.startswith(("---", "+++"))]
                yield from (f"    {line}" for line in shown[:most])
                if len(shown) > most:
                    yield f"    ({len(shown) - most} more lines; --lines shows them)"


def _count(result: Result | None) -> str:
    return "not there" if result is None else f"{result.count} lines"


@contextmanager
def _accepted() -> Iterator[Path | None]:
    """A work tree of the commit in which the expected results were accepted last; None without one."""
    commit = _git("log", "-1", "--format=%H", "--", str(EXPECTED.relative_to(ROOT))).strip()
    if not commit:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "accepted")
        _git("worktree", "add", "--detach", str(place), commit)
        try:
            yield place
        finally:
            _git("worktree", "remove", "--force", str(place))


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _lines(checkout: Path, key: Key) -> list[str]:
    command = [sys.executable, "-m", "tests.golden", "--dump", *key]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(checkout / "src"), str(checkout)))}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
