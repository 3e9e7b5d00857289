"""What a user's call enqueues at once: journal page → write → send → settle. It never decides what is due."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from shared.clock import Clock
from shared.model.message import Message
from shared.queue import JobQueue, SendError
from shared.store.journal import Journal, Page, page_name
from shared.store.table import NotWrittenError

PAGE_MESSAGES = 2000  # so that a page stays far below an item's limit
SENT_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Written:
    """What a write of several jobs came to: the messages that stand for it. Not `sure`: others may stand as well."""

    messages: Sequence[Message]
    sure: bool = True


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

    def run_all(self, due: Mapping[int, Sequence[Message]], write: Callable[[], Written], stop_at: datetime) -> None:
        """As `run` for jobs of several shards, each with a page of its own.

        What is not sent by `stop_at` is left to recovery, and so is all of a write that is not sure.
        """
        pages = list(self._pages(due))
        for page in pages:
            self.journal.write(page)
        written = write()
        try:
            for start in range(0, len(written.messages), SENT_AT_ONCE):
                if self.clock.now() >= stop_at:
                    return
                self.queue.send(written.messages[start : start + SENT_AT_ONCE])
            for page in pages if written.sure else ():
                self.journal.settle(page)
        except (SendError, ClientError, BotoCoreError):
            return  # as above

    def _pages(self, due: Mapping[int, Sequence[Message]]) -> Iterator[Page]:
        now = self.clock.now()
        for shard, messages in due.items():
            for start in range(0, len(messages), PAGE_MESSAGES):
                cut = tuple(messages[start : start + PAGE_MESSAGES])
                yield Page(shard=shard, name=page_name(0, self.token()), written_at=now, messages=cut)
