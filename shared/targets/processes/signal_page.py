"""The signals of one attempt as memory that executor and handler share. It never waits: each side writes and goes on.

byte 0       the executor: a cancel was asked for
byte 1       the handler: it asked, and was told so
byte 2       the handler: which of two slots holds the latest progress; 0: none yet
slots        checksum, length and text of a progress

Python has no memory barriers, so a reader cannot trust the order in which it sees bytes: the checksum tells whether a
slot is whole. Writers take the slot that is not the latest. So neither a kill halfway, nor two threads or forks of a
handler that report at once, can show half a text.
"""

import contextlib
import errno
import fcntl
import mmap
import os
import struct
import tempfile
from types import TracebackType
from typing import Final, Self
from zlib import crc32

from shared.targets.processes import kernel
from shared.targets.processes.limits import MAX_PROGRESS_BYTES

PAGE_BYTES: Final = 4096
_CANCELLED, _TOLD, _LATEST = 0, 1, 2
_HEAD = struct.Struct("<IH")
_SLOTS: Final = {1: 1024, 2: 2048}  # number → where it begins
_TRIES = 5  # of a read whose slot is being written anew


class SignalPage:
    """The executor's side. `fd` is for the handler's process. Raises OSError where there is no memory or descriptor."""

    def __init__(self) -> None:
        self.fd = _memory()
        try:
            self._page = mmap.mmap(self.fd, PAGE_BYTES)
        except BaseException:
            os.close(self.fd)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._page.close()
        os.close(self.fd)

    def cancel(self) -> None:
        """From now on the handler is told that it is cancelled."""
        self._page[_CANCELLED] = 1

    def is_told(self) -> bool:
        """Whether the handler has asked and was told so."""
        return self._page[_TOLD] != 0

    def progress(self) -> str | None:
        """The JSON text that was reported last; None where there is none, or it changes faster than it can be read."""
        for _ in range(_TRIES):
            start = _SLOTS.get(self._page[_LATEST])
            if start is None:
                return None
            slot = self._page[start : start + _HEAD.size + MAX_PROGRESS_BYTES]
            checksum, length = _HEAD.unpack_from(slot)
            data = slot[_HEAD.size : _HEAD.size + length]
            if length <= MAX_PROGRESS_BYTES and crc32(data) == checksum:
                with contextlib.suppress(UnicodeDecodeError):  # whoever wrote that, it was not `report`
                    return data.decode()
        return None


class HandlerLine:
    """The handler's side, in its process and in those that it forks: the Line of its Run."""

    def __init__(self, page: memoryview) -> None:
        self._page = page

    @classmethod
    def over(cls, fd: int) -> Self:
        """Over the page `fd`, which is closed: nothing of it stays in the handler's process but the memory."""
        try:
            return cls(kernel.map_shared(fd, PAGE_BYTES))
        finally:
            os.close(fd)

    def is_cancelled(self) -> bool:
        if not self._page[_CANCELLED]:
            return False
        self._page[_TOLD] = 1
        return True

    def report(self, progress: bytes) -> None:
        number = 1 if self._page[_LATEST] == 2 else 2
        slot = _HEAD.pack(crc32(progress), len(progress)) + progress
        start = _SLOTS[number]
        self._page[start : start + len(slot)] = slot
        self._page[_LATEST] = number


def _memory() -> int:
    """A descriptor of PAGE_BYTES of memory that has no name; its size cannot be changed, where the kernel can do so."""
    try:
        fd = os.memfd_create("duetime-signals", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
        return _unlinked_file()
    try:
        os.ftruncate(fd, PAGE_BYTES)
        # Memory that shrinks under a mapping is a SIGBUS for whoever reads it.
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _unlinked_file() -> int:
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(bytes(PAGE_BYTES))  # all of it, so that a full disk is an error here and not a SIGBUS later
        return os.dup(file.fileno())
