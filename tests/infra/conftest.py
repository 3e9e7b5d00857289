"""The stack's template: once a session as it is deployed by default, and quickly for other choices."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "18,20")

from aws_cdk import App
from aws_cdk import aws_lambda as lambda_

from infra import nag
from infra.app import build
from infra.bundling import ROOT
from infra.options import Options
from infra.stack import DuetimeStack
from tests.infra.template import Template

Synthesise = Callable[..., Template]


def flags() -> dict[str, object]:
    """The context of cdk.json, as the cdk command passes it."""
    context: dict[str, object] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return context


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `cdk synth` writes with the defaults: the real package in it, the rules of cdk-nag applied."""
    app = App(outdir=str(tmp_path_factory.mktemp("assembly")), context=flags())
    build(app)
    return Path(app.synth().directory)


@pytest.fixture(scope="session")
def template(assembly: Path) -> Template:
    """The template of the default choices."""
    return Template(json.loads((assembly / "Duetime.template.json").read_text()))


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory: pytest.TempPathFactory) -> Synthesise:
    """Make the template of other choices, with an empty package, each once; cdk-nag judges it, too."""
    package = tmp_path_factory.mktemp("package")
    (package / "empty.py").write_text("")
    made: dict[str, Template] = {}

    def synthesise(**choices: object) -> Template:
        key = repr(sorted(choices.items()))
        if key not in made:
            app = App(outdir=str(tmp_path_factory.mktemp("other")), context={**flags(), **choices})
            options = Options.read(app.node.try_get_context)
            DuetimeStack(app, "Duetime", options=options, code=lambda_.Code.from_asset(str(package)))
            nag.check(app)
            made[key] = Template(app.synth().get_stack_by_name(options.stack_name).template)
        return made[key]

    return synthesise
