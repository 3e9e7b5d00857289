"""Takes off the dead-letter queue what a redrive has taken up again. It never removes what still needs a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.clock import Clock
from shared.flows.dead_letter import Told, told_of
from shared.model.run import Run
from shared.queue import DeadLetterQueue, Letter
from shared.store.runs import Runs

MOST_LETTERS = 1000  # of one sweep; the next one meets others, for SQS keeps no order
EMPTY_ANSWERS = 3  # in a row: SQS asks some of its servers only, so that one proves nothing
TAKES_S = 40  # at most; well below the time for which letters are hidden
REDRIVEN_WITHIN = timedelta(hours=3)  # three audits: with no redrive since then, nothing is there to be taken off


@dataclass(frozen=True, slots=True)
class AnsweredLetters:
    """Without it a run that was redriven would go on raising the queue's alarm for 14 days."""

    queue: DeadLetterQueue
    runs: Runs
    clock: Clock

    def sweep(self, stop_at: datetime) -> int:
        """Go through the queue; how many letters were removed. The others are visible again when it returns.

        If it dies on the way they are hidden for a minute.
        """
        until = min(stop_at, self.clock.now() + timedelta(seconds=TAKES_S))
        seen: set[str] = set()
        kept: list[Letter] = []
        removed = empty = 0
        while len(seen) < MOST_LETTERS and empty < EMPTY_ANSWERS and self.clock.now() < until:
            letters = [letter for letter in self.queue.receive() if letter.message_id not in seen]
            empty = 0 if letters else empty + 1
            seen |= {letter.message_id for letter in letters}
            answered = self._answered(letters)
            self.queue.remove(answered)
            removed += len(answered)
            kept += [letter for letter in letters if letter not in answered]
        self.queue.show(kept)
        return removed

    def _answered(self, letters: Sequence[Letter]) -> list[Letter]:
        """Those whose last attempt lies before a redrive of their run: a newer letter tells of all that came since."""
        told = {letter.message_id: told_of(letter.body) for letter in letters}
        wanted = {(one.job_id, one.scheduled_for) for one in told.values() if one is not None}
        runs = {(run.job_id, run.scheduled_for): run for run in self.runs.get_many(sorted(wanted))}
        return [letter for letter in letters if _is_answered(told[letter.message_id], runs)]


def is_redriven(run: Run, now: datetime) -> bool:
    """Whether the run was redriven since the audits before this one."""
    return run.earlier_attempts > 0 and run.requested_at is not None and run.requested_at > now - REDRIVEN_WITHIN


def _is_answered(told: Told | None, runs: dict[tuple[str, datetime], Run]) -> bool:
    run = runs.get((told.job_id, told.scheduled_for)) if told else None
    return told is not None and run is not None and told.last_attempt <= run.earlier_attempts
