"""Which handlers there are, learned from the source files. It never imports or runs them.

Submit refuses unknown names by this without loading what the handlers need.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from shared.model.errors import DuetimeError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


class HandlerSourceError(DuetimeError):
    """A file of the handlers cannot be read as it stands; the message names file, line and what would be right."""


def check_handler_name(name: object) -> str:
    """Return `name` if it can be a handler's; raises ValueError otherwise."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"handler name {name!r} must be 1 to 128 letters, digits or any of _ . : - and begin with a letter or digit"
        )
    return name


def handler_modules(directory: Path) -> dict[str, Path]:
    """Every module under the package `directory`, dotted name → file, the package itself first.

    Raises HandlerSourceError for a directory that is none and for a file that could never be imported.
    """
    if not directory.is_dir():
        raise HandlerSourceError(f"there is no handlers directory {directory}")
    found: dict[str, Path] = {}
    for path in sorted(directory.rglob("*.py")):
        parts = path.relative_to(directory).with_suffix("").parts
        if any(part.startswith(".") or part == "__pycache__" for part in parts):
            continue
        for part in parts:
            if not part.isidentifier():
                raise HandlerSourceError(
                    f"{_shown(directory, path)}: {part!r} cannot be imported; name modules by letters, digits and _"
                )
        names = (directory.name, *(parts[:-1] if parts[-1] == "__init__" else parts))
        found[".".join(names)] = path
    return dict(sorted(found.items()))


def handler_names(directory: Path) -> frozenset[str]:
    """The literal names of all `@handler("…")` under the package `directory`, whatever `handler` was imported as.

    Raises HandlerSourceError for a file with a syntax error, a name that is not a literal, malformed or used twice.
    """
    places: dict[str, str] = {}
    for module, path in handler_modules(directory).items():
        for name, line in _names_in(directory, module, path):
            place = f"{_shown(directory, path)}:{line}"
            if name in places:
                raise HandlerSourceError(f"handler {name!r} is defined twice: at {places[name]} and at {place}")
            places[name] = place
    return frozenset(places)


def _names_in(directory: Path, module: str, path: Path) -> Iterator[tuple[str, int]]:
    shown = _shown(directory, path)
    try:
        tree = ast.parse(path.read_bytes(), filename=shown)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # ValueError: a NUL byte
        line = getattr(error, "lineno", None)
        raise HandlerSourceError(f"{shown}:{line or 1}: not valid Python: {getattr(error, 'msg', error)}") from None
    functions, packages = _imported(tree, directory.name, module, is_package=path.name == "__init__.py")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_handler(node.func, functions, packages):
            yield _literal_name(node, shown), node.lineno


def _imported(tree: ast.AST, package: str, module: str, *, is_package: bool) -> tuple[set[str], set[str]]:
    """The names in this file that are the decorator, and those that are the package it comes from."""
    functions: set[str] = set()
    packages: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root, _, deeper = alias.name.partition(".")
                if root in (package, "handlers") and not (deeper and alias.asname):
                    packages.add(alias.asname or root)
        elif isinstance(node, ast.ImportFrom) and _is_source(_source(node, module, is_package), package):
            functions.update(alias.asname or "handler" for alias in node.names if alias.name in ("handler", "*"))
    return functions, packages


def _is_source(module: str, package: str) -> bool:
    """Whether a name `handler` taken from `module` is the decorator: from the package, or from where that has it."""
    return module.split(".", maxsplit=1)[0] in (package, "handlers") or module == "shared.targets.handler_api"


def _source(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The full name of the module that `from … import` takes from."""
    if not node.level:
        return node.module or ""
    base = module.split(".") if is_package else module.split(".")[:-1]
    base = base[: len(base) - (node.level - 1)]
    return ".".join([*base, *([node.module] if node.module else [])])


def _is_handler(called: ast.expr, functions: set[str], packages: set[str]) -> bool:
    if isinstance(called, ast.Name):
        return called.id in functions
    return (
        isinstance(called, ast.Attribute)
        and called.attr == "handler"
        and isinstance(called.value, ast.Name)
        and called.value.id in packages
    )


def _literal_name(node: ast.Call, shown: str) -> str:
    given = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "name"), None)
    if not isinstance(given, ast.Constant) or not isinstance(given.value, str):
        raise HandlerSourceError(
            f'{shown}:{node.lineno}: write the name as a literal, @handler("name"): submit reads it from here'
        )
    try:
        return check_handler_name(given.value)
    except ValueError as error:
        raise HandlerSourceError(f"{shown}:{node.lineno}: {error}") from None


def _shown(directory: Path, path: Path) -> str:
    return str(path.relative_to(directory.parent))
