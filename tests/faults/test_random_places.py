"""Random days of runs that may not be beside each other: long handlers, failures, crashes and limits that change.

The checker counts, at every call, what may be going on beside it. Each day is made of one seed, and replays from it.
"""

import random
from datetime import timedelta

import pytest

from shared.model.call import Call
from shared.model.run import Result
from tests.faults.checker import Promise, check, told
from tests.faults.history import Called
from tests.faults.system import Hook, Step, System, deployed
from tests.support import aws_rules
from tests.support.world import SUCCEED, failure

POLICIES = ("skip", "queue", "replace", "allow")
SETTLE_S = 3600
MOST_CRASHES = 6


class Dying(Hook):
    """Any process but the API's may die at any step, before or after its effect, now and then."""

    def __init__(self, dice: random.Random) -> None:
        self.dice, self.system, self.crashes = dice, None, 0  # type: ignore[var-annotated]

    def before(self, step: Step) -> None:
        self._die(step, "before")

    def after(self, step: Step) -> None:
        self._die(step, "after")

    def _die(self, step: Step, when: str) -> None:
        if self.system is None or step.process.kind != "execute" or self.crashes == MOST_CRASHES:
            return
        if self.dice.random() < 0.006:
            self.crashes += 1
            self.system.dies(step, when)


def day(seed: int) -> tuple[System, Dying]:
    """Jobs of all policies in one limited group, whose handlers take long, fail, and heed a cancel or do not."""
    dice = random.Random(seed)
    hook = Dying(dice)
    with aws_rules.off(), deployed(hook) as system:
        depth = 0

        def handler(call: Call) -> Result:
            nonlocal depth
            signals = system.inline.working_on.flow.signals
            depth += 1
            try:
                for _ in range(dice.choice((0, 0, 1, 3)) if depth <= 3 else 0):
                    system.pass_s(dice.choice((3, 15)))
                    system.renew_lease()
                    if signals.cancelled.is_set() and dice.random() < 0.7:
                        signals.told = True
                        break
            finally:
                depth -= 1
            return failure() if dice.random() < 0.25 else SUCCEED

        system.handler = handler
        system.limit_group("g", dice.choice((1, 2)))
        for number, policy in enumerate(POLICIES):
            group = dice.choice(("g", "g", None))
            system.submit_job(
                f"{policy}{number}", every_s=dice.choice((10, 15, 25)), runs=6, overlap=policy, group=group, base_s=5
            )
        hook.system = system
        for _ in range(6):
            system.pass_s(dice.choice((10, 25)))
            what = dice.random()
            if what < 0.3:
                system.limit_group("g", dice.choice((1, 2, None)))
            elif what < 0.6:
                job = dice.choice(POLICIES)
                system.patch_job(f"{job}{POLICIES.index(job)}", overlap=dice.choice(POLICIES))
        hook.system = None
        system.settle(SETTLE_S)
        system.end()
    return system, hook


@pytest.mark.parametrize("seed", range(12))
def test_no_day_has_more_beside_each_other_than_may_be(seed: int) -> None:
    system, hook = day(seed)
    promise = Promise(late_s=SETTLE_S - 900, lost_attempts=hook.crashes + 2, findings=10**6, drained=False, ticks=15)
    found = [one for one in check(system.history, promise) if one.invariant in ("overlap", "group", "I2", "I3", "I4")]
    assert not found, told(found)
    assert len(system.history.of(Called)) > 5
    left = [
        message for message in system.queue.messages if message.visible_at < system.clock.now() - timedelta(minutes=1)
    ]
    assert left == []
