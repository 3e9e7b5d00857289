"""The CDK app: context in, one stack out. It never deploys (the cdk command does)."""

import shutil
import sys

from aws_cdk import App
from aws_cdk import aws_lambda as lambda_

from infra import nag
from infra.bundling import BundlingError, bundle
from infra.options import OptionError, Options
from infra.stack import DuetimeStack


def build(app: App) -> DuetimeStack:
    """Add the stack that the app's context asks for. Raises OptionError, BundlingError."""
    options = Options.read(app.node.try_get_context, app.node.get_all_context().keys())
    package = bundle(options.architecture, options.python_version)
    try:
        stack = DuetimeStack(app, "Duetime", options=options, code=lambda_.Code.from_asset(str(package)))
    finally:
        shutil.rmtree(package)  # CDK has its own copy by now
    nag.check(app)
    return stack


def main() -> None:
    """What `cdk` runs."""
    app = App()
    try:
        build(app)
    except (OptionError, BundlingError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    app.synth()


if __name__ == "__main__":
    main()
