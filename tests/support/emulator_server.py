"""Runs ministack, on loopback only, on a clock that the tests hold. Run by path in the emulator's own environment.

`emulator_server.py CLOCK_FILE`: the file holds one double, seconds since 1970; while not 0, `time.time` answers it.
It ends when its standard input closes: then the process that started it is gone.
"""

import mmap
import os
import struct
import sys
import threading
import time
from pathlib import Path


def _follow(clock_file: Path) -> None:
    real = time.time
    with clock_file.open("r+b") as file:
        shared = mmap.mmap(file.fileno(), 8)

    def followed() -> float:
        moment: float = struct.unpack_from("d", shared)[0]
        return moment or real()

    time.time = followed


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _follow(Path(sys.argv[1]))
    sys.argv = ["ministack"]
    sys.path.pop(0)  # nothing of the product or its tests may be in reach
    from ministack.app import main

    main()
