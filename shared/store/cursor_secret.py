"""The secret that cursors are signed with: one a deployment, kept in the table. It never signs anything."""

from collections.abc import Callable
from threading import Lock

from shared.store import keys
from shared.store.table import ConditionFailedError, Table, text


class CursorSecret:
    """Read once in the life of a process; made by the first that needs it. `make` is a new random text at each call."""

    def __init__(self, table: Table, make: Callable[[], str]) -> None:
        self._table = table
        self._make = make
        self._kept: str | None = None
        self._lock = Lock()

    def get(self) -> str:
        """The secret."""
        with self._lock:
            if self._kept is None:
                self._kept = self._read() or self._write()
            return self._kept

    def _read(self) -> str | None:
        item = self._table.get(keys.cursor_secret_key())
        return str(item["secret"]["S"]) if item else None

    def _write(self) -> str:
        #   A: read: none ─────────── put
        #   B:      read: none ── put                A's put is refused and shows B's
        made = self._make()
        try:
            self._table.put({**keys.cursor_secret_key(), "secret": text(made)}, "attribute_not_exists(#pk)")
        except ConditionFailedError as refused:
            if refused.item is None:  # somebody has removed it again at this very moment
                return self._read() or self._write()
            return str(refused.item["secret"]["S"])
        return made
