"""The mutation list follows the code: each text stands in its file exactly once, and each change compiles."""

import shutil
from pathlib import Path

import pytest

from tests.faults.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.safeguard)
def test_a_mutant_can_be_made(tmp_path: Path, mutant: Mutant) -> None:
    copy = tmp_path / mutant.file
    copy.parent.mkdir(parents=True)
    shutil.copy(ROOT / mutant.file, copy)
    mutant.apply(tmp_path)
    compile(copy.read_text(), mutant.file, "exec")
    assert all((ROOT / test).exists() for test in mutant.killed_by)
