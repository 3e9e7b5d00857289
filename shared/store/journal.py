"""The journal: the page of a batch of claims, written before them and settled after the sends. It sends nothing."""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.model.instants import epoch_s, from_sort_text, sort_text
from shared.model.message import Message
from shared.store import keys
from shared.store.codec import read_all
from shared.store.table import Item, Table, number, text

OLD_AFTER_S = 90  # longer than any tick or submit can live: the writer of an older page is done or dead
KEPT = timedelta(days=14)  # the net under a page that nobody removes; the audit reports it long before
PLAIN_BYTES = 800  # of entries: with the rest of the page 1 KB, which costs no less when it is compressed
MOST_BYTES = 1_000_000  # of entries that are unpacked; a page as large as claims and calls make them has 130,000


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One batch of claims of a shard. `name` is `<epoch>#<page>`; its messages are what the claims will send.

    `number`: of the pages of one name, each written over the one before.
    """

    shard: int
    name: str
    written_at: datetime
    messages: tuple[Message, ...]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal pages of `table`."""

    table: Table

    def write(self, page: Page) -> None:
        """Before the claims. A put that the network held back must not undo the page that came after it."""
        latest = "attribute_not_exists(#number) OR #number <= :number"
        self.table.put(page_item(page), latest, {":number": number(page.number)})

    def settle(self, page: Page) -> None:
        """After the sends."""
        self.table.delete(keys.page_key(page.shard, page.name))

    def slate(self, shard: int, epoch: int, name: str) -> "Slate":
        """For the pages of a writer that is done with each before it begins the next."""
        return Slate(self, shard, epoch, name)

    def old_pages(self, shard: int, now: datetime) -> Iterator[Page]:
        """The pages of `shard` whose writer is done or dead. One that cannot be read is left; the audit reports it."""
        limit = now - timedelta(seconds=OLD_AFTER_S)
        pages = self.table.query(
            "#pk = :pk AND begins_with(#sk, :claim)",
            {":pk": text(keys.shard_pk(shard)), ":claim": text(keys.CLAIM_PREFIX)},
        )
        for items, _ in pages:
            yield from (page for page in read_all(items, page_of)[0] if page.written_at < limit)


@dataclass(slots=True)
class Slate:
    """A writer's pages, one after the other: the next is written over one that is settled, so only the last is removed.

    A writer that dies between two leaves one that is settled: recovery then sends its messages once more, to no effect.
    """

    journal: Journal
    shard: int
    epoch: int
    name: str
    _written: int = 0
    _names: int = 0  # taken by pages that are not to be written over
    _page: Page | None = None
    _settled: bool = False

    def write(self, messages: Iterable[Message], now: datetime) -> None:
        """Before the claims."""
        if self._page is not None and not self._settled:
            self._names += 1
        self._page = Page(
            shard=self.shard,
            name=page_name(self.epoch, f"{self.name}{self._names}"),
            written_at=now,
            messages=tuple(messages),
            number=self._written,
        )
        self._written += 1
        self._settled = False
        self.journal.write(self._page)

    def settle(self) -> None:
        """After the sends of the last page written."""
        self._settled = True

    def close(self) -> None:
        """No further page comes: remove the last, if it is settled."""
        if self._page is not None and self._settled:
            self.journal.settle(self._page)
        self._page = None


def page_name(epoch: int, page: str) -> str:
    """The name of a page: of tick `epoch`; 0 for those of submit, whose `page` names the job and its revision."""
    return f"{epoch:010d}#{page}"


def page_item(page: Page) -> Item:
    """A page as its item."""
    return {
        **keys.page_key(page.shard, page.name),
        "written_at": text(sort_text(page.written_at)),
        "number": number(page.number),
        "entries": _entries_value(page.messages),
        keys.TTL_ATTRIBUTE: number(epoch_s(page.written_at + KEPT)),
    }


def page_of(item: Item) -> Page:
    """The page in `item`."""
    return Page(
        shard=int(item[keys.PK]["S"].removeprefix("shard#")),
        name=item[keys.SK]["S"].removeprefix(keys.CLAIM_PREFIX),
        written_at=from_sort_text(item["written_at"]["S"]),
        messages=tuple(_messages_of(_entries_text(item["entries"]))),
        number=int(item["number"]["N"]) if "number" in item else 0,
    )


def _entries_value(messages: Sequence[Message]) -> Item:
    """One entry a claim: job, revision, fence, lease, its occurrences; kept short, since writing and removing cost by
    the KB. A hundred jobs of random ids are 7 KB as text and 2.3 KB compressed.
    """
    entries: dict[tuple[str, int, int, int], list[Any]] = {}
    for message in messages:
        entry = (message.job_id, message.revision, message.fence, message.lease_s)
        entries.setdefault(entry, []).append(_occurrence(message))
    plain = json.dumps([[*entry, occurrences] for entry, occurrences in entries.items()], separators=(",", ":"))
    return text(plain) if len(plain) <= PLAIN_BYTES else {"B": zlib.compress(plain.encode())}


def _entries_text(value: Item) -> str:
    """The entries as text, which they are in small pages and in all of release 0.1.0. Raises for any other value."""
    if "S" in value:
        return str(value["S"])
    unpack = zlib.decompressobj()
    plain = unpack.decompress(value["B"], MOST_BYTES)
    if not unpack.eof:
        raise ValueError(f"the entries are cut off, or more than {MOST_BYTES} bytes")
    return plain.decode()


def _occurrence(message: Message) -> str | list[str | int | None]:
    moment = sort_text(message.scheduled_for)
    if message.skip is None:
        return moment
    return [moment, message.skip, message.missed, sort_text(message.missed_until) if message.missed_until else None]


def _messages_of(entries: str) -> Iterator[Message]:
    for job_id, revision, fence, lease_s, occurrences in json.loads(entries):
        for occurrence in occurrences:
            moment, skip, missed, until = occurrence if isinstance(occurrence, list) else (occurrence, None, None, None)
            yield Message(
                job_id=job_id,
                scheduled_for=from_sort_text(moment),
                revision=revision,
                fence=fence,
                lease_s=lease_s,
                skip=skip,
                missed=missed,
                missed_until=from_sort_text(until) if until else None,
            )
