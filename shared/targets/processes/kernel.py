"""The few Linux calls that Python does not offer, or not as they are needed here. It decides nothing.

None fails where the kernel does not have it, `map_shared` apart: each is a net below another.
"""

import contextlib
import ctypes
import mmap
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
_FAILED = ctypes.c_void_p(-1).value


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError):  # not Linux
        _libc.prctl(option, value, 0, 0, 0)


def end_with_parent() -> None:
    """Have this process killed when the thread that forked it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Make this process the parent of all descendants whose own parent ends, also of those that became daemons."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> frozenset[int]:
    """Process ids of this process's children; none where the kernel does not tell."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return frozenset(map(int, file.read().split()))
    except OSError:
        return frozenset()


def be_first_to_go() -> None:
    """When memory runs out, have the kernel end this process and not the executor."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
        file.write(b"1000")


def no_core_dumps() -> None:
    """Keep a crash from leaving its memory in a file."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def flush_c_streams() -> None:
    """Write out what C libraries have printed: a process that ends by `_exit` would lose it."""
    _libc.fflush(None)


def map_shared(fd: int, size: int) -> memoryview:
    """The first `size` bytes of `fd`, to write to, until the process ends. Raises OSError.

    Python's own mmap keeps a copy of the descriptor, which a handler and its forks would get.
    """
    address = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    if address is None or address == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")


def kill_group(pid: int) -> None:
    """SIGKILL for process `pid` and all of the group it leads."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def ending(status: int) -> str:
    """`exited with code 1`, or for the negative number of a signal `was ended by signal SIGSEGV`."""
    if status >= 0:
        return f"exited with code {status}"
    try:
        return f"was ended by signal {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
