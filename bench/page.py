"""Puts a bench's tables into docs/performance.md, each between its two markers. It leaves the words around them."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.measuring import machine

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"


def options(about: str | None) -> argparse.ArgumentParser:
    """What every bench takes; each adds its own."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    return parser


def publish(tables: Mapping[str, str], write: bool) -> None:
    """Print tables by name; with `write` put them into the page as well."""
    for name, text in tables.items():
        print(f"\n[{name}]\n{text}", flush=True)
    if write:
        PAGE.write_text(filled(PAGE.read_text(), {**tables, "machine": machine()}))


def filled(page: str, tables: Mapping[str, str]) -> str:
    """`page` with each table between its markers. Raises ValueError for a table that has none."""
    for name, text in tables.items():
        begin, end = f"<!-- bench:{name} -->\n", f"\n<!-- /bench:{name} -->"
        if begin not in page or end not in page:
            raise ValueError(f"docs/performance.md has no markers for {name}")
        before, rest = page.split(begin, 1)
        page = before + begin + text + end + rest.split(end, 1)[1]
    return page


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
