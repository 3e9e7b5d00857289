"""What others say about the template: cdk-nag, cfn-lint, and a snapshot of the whole."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_sqs as sqs
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from infra import nag
from tests.infra.conftest import Synthesise
from tests.infra.template import Template

# CDK lets a function wait for its role by name, though the reference to it says the same.
REDUNDANT_DEPENDENCY = "W3005"


def test_nag_accepts_the_stack(assembly: Path) -> None:
    """Synthesis fails on a finding that nobody has acknowledged; here is the report of one that did not."""
    report = json.loads((assembly / "validation-report.json").read_text())
    assert report["pluginReports"] == []


def test_nag_does_judge(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    sqs.Queue(Stack(app, "Wrong"), "Queue", enforce_ssl=False)
    nag.check(app)
    with pytest.raises(RuntimeError, match="AwsSolutions-SQS4"):
        app.synth()


def acknowledged(assembly: Path) -> set[tuple[str, str, str]]:
    """(construct's path, rule, reason) of everything that was acknowledged."""
    found: set[tuple[str, str, str]] = set()
    metadata = json.loads((assembly / "Duetime.metadata.json").read_text())
    for path, entries in metadata.items():
        for entry in entries:
            if "acknowledg" in entry["type"].lower():
                data = entry["data"]
                found |= {(path, rule, reason) for rule, reason in data.items()}
    return found


def test_only_two_rules_are_acknowledged_each_with_its_reason(assembly: Path) -> None:
    found = acknowledged(assembly)
    rules = {rule.split("::", 1)[-1] for _, rule, _ in found}
    assert rules == {"AwsSolutions-IAM5[Resource::*]", "AwsSolutions-L1"}
    assert len(found) == 8, "once each for four functions or their roles, nowhere wider"
    assert all(len(reason) > 40 for _, _, reason in found)


@pytest.mark.parametrize(
    "choices",
    [
        pytest.param({}, id="default"),
        pytest.param({"shards": 4, "alarm_email": "ops@example.com", "removal_policy": "destroy"}, id="four-shards"),
        pytest.param({"auth": "none", "tracing": "off", "alarm_key": "none", "python_version": "3.11"}, id="open"),
    ],
)
def test_cfn_lint_finds_nothing(synthesise: Synthesise, tmp_path: Path, choices: dict[str, Any]) -> None:
    file = tmp_path / "template.json"
    file.write_text(json.dumps(synthesise(**choices).body))
    command = [str(Path(sys.executable).parent / "cfn-lint"), "--ignore-checks", REDUNDANT_DEPENDENCY, "--", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_template_stays_within_cloudformations_limits(synthesise: Synthesise) -> None:
    largest = synthesise(shards=256, shards_per_tick=1)
    assert len(largest.resources) <= 500
    assert len(json.dumps(largest.body)) <= 1_000_000


def normalised(body: dict[str, Any]) -> Any:
    """The template without what changes with every line of code: the package's hash."""
    return json.loads(re.sub(r"\b[0-9a-f]{64}\b", "<hash>", json.dumps(body)))


def test_the_template_is_as_it_was_agreed(template: Template, snapshot: SnapshotAssertion) -> None:
    """A change here is a change of the deployment: look at it, then run pytest with --snapshot-update."""
    assert normalised(template.body) == snapshot(extension_class=JSONSnapshotExtension)
