"""What the stored items that version 0.2.0 writes otherwise than 0.1.0 hold. Later versions may only add to it."""

from datetime import timedelta

from shared.model.message import Message
from shared.store.journal import Page
from tests.compat.values_0_1_0 import at

_SPAN = Message(
    job_id="b",
    scheduled_for=at("2026-11-30T09:00:00"),
    revision=2,
    fence=1234,
    lease_s=35,
    skip="catch_up",
    missed=3,
    missed_until=at("2026-11-30T11:00:00"),
)
PAGES = {
    "a tick's, compressed": Page(
        shard=3,
        name="0000001234#2026-11-30T12:05#3#0",
        written_at=at("2026-11-30T12:01:00.5"),
        messages=(
            *(
                Message(
                    job_id=f"billing.daily:{number}",
                    scheduled_for=at("2026-11-30T12:05:00.25") + timedelta(seconds=number),
                    revision=1 + number % 2,
                    fence=1234,
                    lease_s=65,
                )
                for number in range(20)
            ),
            _SPAN,
        ),
    )
}
