"""The tour of examples/, on the stack as it is deployed: every stop sees what it should."""

import sys
from pathlib import Path

import pytest

from duetime.local.stack import LocalStack
from examples import tour

pytestmark = [pytest.mark.deployed, pytest.mark.timeout(600)]


def test_every_stop_of_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalStack(tmp_path) as stack:
        monkeypatch.setattr(sys, "argv", ["tour", "--url", stack.url])
        assert tour.main() == 0
