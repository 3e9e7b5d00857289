"""The page that executor and handler share: whatever the other side does to it, a reader gets whole texts or none."""

import errno
import os
import signal
import time
from collections.abc import Iterator

import pytest

from shared.targets.processes.limits import MAX_PROGRESS_BYTES
from shared.targets.processes.signal_page import PAGE_BYTES, HandlerLine, SignalPage


@pytest.fixture
def page() -> Iterator[SignalPage]:
    with SignalPage() as page:
        yield page


def line(page: SignalPage) -> HandlerLine:
    return HandlerLine.over(os.dup(page.fd))


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def fork(work: HandlerLine, texts: list[bytes]) -> int:
    """A process that reports these texts, one after another, until it is killed."""
    pid = os.fork()
    if pid == 0:
        while True:
            for text in texts:
                work.report(text)
    return pid


def end(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_cancel_is_told_and_the_telling_is_known(page: SignalPage) -> None:
    handler = line(page)
    assert handler.is_cancelled() is False
    assert page.is_told() is False
    page.cancel()
    assert page.is_told() is False
    assert handler.is_cancelled() is True
    assert page.is_told() is True


@pytest.mark.parametrize("text", ["1", '{"a":30.40}', '"é漢\U0001f600"', '"' + "x" * (MAX_PROGRESS_BYTES - 2) + '"'])
def test_the_latest_progress_is_read_as_it_was_reported(page: SignalPage, text: str) -> None:
    handler = line(page)
    assert page.progress() is None
    for number in range(5):
        handler.report(str(number).encode())
        assert page.progress() == str(number)
    handler.report(text.encode())
    assert [page.progress(), page.progress()] == [text, text]


def test_each_reader_of_a_fast_writer_gets_a_whole_text(page: SignalPage) -> None:
    texts = [f'"{digit * length}"' for digit, length in zip("0123456789", range(10, 510, 50), strict=True)]
    writers = [fork(line(page), [text.encode() for text in texts]) for _ in range(2)]
    try:
        seen = set()
        until = time.monotonic() + 1
        while time.monotonic() < until:
            seen.add(page.progress())
    finally:
        end(*writers)
    assert seen <= {*texts, None}
    assert len(seen & set(texts)) > 1


def test_a_kill_leaves_a_whole_text(page: SignalPage) -> None:
    for number in range(30):
        writer = fork(line(page), [b'"aaaa"', b'"bb"'])
        time.sleep(0.001 * number)
        end(writer)
        assert page.progress() in {None, '"aaaa"', '"bb"'}
    assert page.progress() is not None


@pytest.mark.parametrize(("place", "byte"), [(2, 3), (2, 255), (2048, 7), (2052, 9), (2053, 255), (2054, 0xFF)])
def test_what_was_scribbled_over_is_no_progress(page: SignalPage, place: int, byte: int) -> None:
    line(page).report(b'"whole"')
    assert page.progress() == '"whole"'
    os.pwrite(page.fd, bytes([byte]), place)
    assert page.progress() is None


def test_its_size_cannot_be_changed(page: SignalPage) -> None:
    """Memory that went away under a mapping would end the executor by SIGBUS."""
    for size in (0, PAGE_BYTES - 1, PAGE_BYTES * 2):
        with pytest.raises(OSError, match="not permitted"):
            os.ftruncate(page.fd, size)


def test_no_descriptor_is_left() -> None:
    before = open_descriptors()
    for _ in range(10):
        with SignalPage() as page:
            handler = line(page)
            page.cancel()
        assert handler.is_cancelled()  # the memory stays with the process that has it
        assert open_descriptors() == before


def no_such_call(*_: object) -> int:
    raise OSError(errno.ENOSYS, "not here")


@pytest.mark.parametrize("how", ["missing", "refused"])
def test_without_anonymous_memory_it_is_a_file_without_a_name(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "missing":
        monkeypatch.delattr(os, "memfd_create")
    else:
        monkeypatch.setattr(os, "memfd_create", no_such_call)
    before = open_descriptors()
    with SignalPage() as page:
        handler = line(page)
        page.cancel()
        handler.report(b"5")
        assert (handler.is_cancelled(), page.progress()) == (True, "5")
        assert "(deleted)" in os.readlink(f"/proc/self/fd/{page.fd}")
    assert open_descriptors() == before


def test_a_lack_of_descriptors_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(os, "memfd_create", too_many)
    with pytest.raises(OSError, match="too many open files"):
        SignalPage()
