"""Which module of the project imports which, read from the source without running it.

In: the project's folder. Out: for each Python file the files that it imports, names that a package hands on
(`from analyser.capture import Source`) followed to the file that they come from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

# The folders of the product are parts of this package.
PACKAGE = "wirewitness"
ROOMS = ("dissectors", "analyser", "reports", "app", "tests")


def files_by_module(root: Path) -> dict[str, Path]:
    """All modules of the project: dotted name -> path below the root. A package is its `__init__.py`."""
    found = {}
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            below = path.relative_to(root)
            parts = below.parent.parts if below.name == "__init__.py" else below.with_suffix("").parts
            found[".".join(parts if room == "tests" else (PACKAGE, *parts))] = below
    return found


def imports(root: Path) -> dict[Path, set[Path]]:
    """File -> the files that it imports, anywhere in it, itself left out."""
    modules = files_by_module(root)
    trees = {name: ast.parse((root / path).read_bytes()) for name, path in modules.items()}
    handed_on = {name: dict(_names(trees[name])) for name, path in modules.items() if path.name == "__init__.py"}
    found: dict[Path, set[Path]] = {}
    for name, path in modules.items():
        asked = {_origin(one, modules, handed_on) for one in _asked(trees[name])}
        found[path] = {modules[one] for one in asked if one is not None} - {path}
    return found


def _asked(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Module and name of every import; the name is None in `import a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name, None) for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, one.name) for one in node.names)


def _names(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """What a package imports by name: the name that others find there, and where it comes from."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((one.asname or one.name, (node.module, one.name)) for one in node.names)


def _origin(
    asked: tuple[str, str | None],
    modules: Mapping[str, Path],
    handed_on: Mapping[str, Mapping[str, tuple[str, str | None]]],
) -> str | None:
    """The module that a name comes from; None for what is not of the project."""
    module, name = asked
    if name is not None and f"{module}.{name}" in modules:
        return f"{module}.{name}"
    further = handed_on.get(module, {}).get(name or "")
    if further is not None and further != asked:
        return _origin(further, modules, handed_on)
    return module if module in modules else None
