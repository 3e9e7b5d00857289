"""cdk-nag on the app, and the one way to acknowledge a rule. A finding never goes without a written reason."""

from aws_cdk import Acknowledgment, App, Validations
from cdk_nag import AwsSolutionsChecks
from constructs import IConstruct


def check(app: App) -> None:
    """Judge the app by the AwsSolutions rules at synthesis; a finding that is not acknowledged fails it."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app, verbose=True))


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept `rule` on `construct` and all below it, because of `reason`."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))
