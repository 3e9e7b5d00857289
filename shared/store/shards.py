"""A shard's lease: owner, epoch, end, watermark. No correctness rests on it: it only saves two ticks one work."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.model.instants import from_sort_text, sort_text
from shared.store import keys
from shared.store.table import ConditionFailedError, Item, Table, number, text


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardLease:
    """What a tick holds: the fence (`epoch`), and the bucket up to which all was drained (None: never ticked)."""

    shard: int
    epoch: int
    watermark: datetime | None
    ticked_at: datetime | None  # the start of the latest tick that came to its end


@dataclass(frozen=True, slots=True)
class Shards:
    """The shard leases of `table`."""

    table: Table

    def take(self, shard: int, owner: str, now: datetime, lease_s: int) -> ShardLease | None:
        """Take the lease for `lease_s`, with the next epoch; None while a live tick holds it."""
        #   EventBridge starts a minute's tick twice: the second finds the lease live and leaves.
        #   A tick that dies holds it to its end at most; the next one has a higher epoch.
        try:
            item = self.table.update(
                keys.lease_key(shard),
                "SET #owner = :owner, #lease_expires_at = :end, #epoch = if_not_exists(#epoch, :zero) + :one",
                "attribute_not_exists(#pk) OR #lease_expires_at <= :now",
                {
                    ":owner": text(owner),
                    ":end": text(sort_text(now + timedelta(seconds=lease_s))),
                    ":now": text(sort_text(now)),
                    ":zero": number(0),
                    ":one": number(1),
                },
                returned="ALL_NEW",
            )
        except ConditionFailedError:
            return None
        return _lease_of(shard, item)

    def release(self, lease: ShardLease, watermark: datetime | None, now: datetime) -> bool:
        """Give the lease back with the new watermark; False when a later tick has taken it."""
        sets = "SET #lease_expires_at = :now, #ticked_at = :now" + (", #watermark = :watermark" if watermark else "")
        values: Item = {":now": text(sort_text(now)), ":epoch": number(lease.epoch)}
        values |= {":watermark": text(sort_text(watermark))} if watermark else {}
        try:
            self.table.update(keys.lease_key(lease.shard), sets, "#epoch = :epoch", values)
        except ConditionFailedError:
            return False
        return True

    def get_many(self, shards: int) -> list[ShardLease]:
        """The leases of shards 0 to `shards` - 1, where they have been ticked."""
        items = self.table.get_many([keys.lease_key(shard) for shard in range(shards)])
        leases = (_lease_of(int(item[keys.PK]["S"].removeprefix("shard#")), item) for item in items)
        return sorted(leases, key=lambda lease: lease.shard)


def _lease_of(shard: int, item: Item) -> ShardLease:
    return ShardLease(
        shard=shard,
        epoch=int(item["epoch"]["N"]),
        watermark=from_sort_text(item["watermark"]["S"]) if "watermark" in item else None,
        ticked_at=from_sort_text(item["ticked_at"]["S"]) if "ticked_at" in item else None,
    )
