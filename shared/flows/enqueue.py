"""What a user's call enqueues at once: journal page → write → send → settle. It never decides what is due."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from shared.clock import Clock
from shared.model.message import Message
from shared.queue import JobQueue, SendError
from shared.store.journal import Journal, Page, page_name
from shared.store.table import NotWrittenError


@dataclass(frozen=True, slots=True)
class Enqueuer:
    """Makes the sends of a call as certain as its write, as a tick's batch makes those of its claims (I6)."""

    journal: Journal
    queue: JobQueue
    clock: Clock
    token: Callable[[], str]  # a new name at each call, for journal pages

    def run(self, shard: int, messages: Sequence[Message], write: Callable[[], Sequence[Message]]) -> None:
        """Have `write` make the calls' change and say which of `messages` it stands for; then send those.

        What `write` raises comes through. After a sure NotWrittenError nothing is left behind; after any other
        error the page stays, and recovery sends what was written after all.
        """
        page = Page(shard=shard, name=page_name(0, self.token()), written_at=self.clock.now(), messages=tuple(messages))
        self.journal.write(page)
        try:
            written = write()
        except NotWrittenError as refused:
            if refused.sure:
                self.journal.settle(page)
            raise
        try:
            self.queue.send(written)
            self.journal.settle(page)
        except (SendError, ClientError, BotoCoreError):
            return  # the write stands and the page stays: the next tick's recovery sends what is missing
