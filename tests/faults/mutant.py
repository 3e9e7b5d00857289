"""One safeguard deleted: a text of one file, and what stands in its place. It runs nothing (mutants does)."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """`old` becomes `new` in `file`; `killed_by` are the tests that must see it."""

    safeguard: str
    file: str
    old: str
    new: str
    killed_by: tuple[str, ...]

    def apply(self, tree: Path) -> None:
        """Raises ValueError when `old` is not there exactly once: then the list must follow the code."""
        path = tree / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.safeguard}: {self.old!r} is in {self.file} {text.count(self.old)} times, not once")
        path.write_text(text.replace(self.old, self.new))
