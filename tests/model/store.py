"""Each AWS call of the protocol, with its condition, as a step from world to world. It knows no flow's order.

A method named as in shared/store or shared/queue makes a `Call`; its body is what AWS does when the call arrives, and
gives the outcomes that are possible: the world after it, and the answer. Conditions that a weakened variant takes away
are methods of their own.
"""

from tests.model.store_gates import GateCalls
from tests.model.store_jobs import JobCalls
from tests.model.store_targets import TargetCalls


class Store(JobCalls, GateCalls, TargetCalls):
    """The table, the queues, the targets and the users' answers."""

    def __init__(self, max_attempts: int = 2, failures: bool = False) -> None:
        self.max_attempts = max_attempts
        self.failures = failures
