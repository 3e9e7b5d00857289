"""The flows of shared/flows: each `yield` is one AWS call, in the order of the code. They decide as the code does.

A flow's place is its line and its variables, so that two pasts that lead to the same line with the same variables are
searched once: what a flow knows stands in plain variables of immutable values, and no loop runs over a hidden iterator.
"""

from tests.model.flows_attempt import AttemptFlows
from tests.model.flows_claims import Flow

__all__ = ["Flow", "Flows"]


class Flows(AttemptFlows):
    """All of them."""
