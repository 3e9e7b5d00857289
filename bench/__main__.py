"""All benches, one after the other, each in a process of its own; their tables go into docs/performance.md.

make bench                  some 40 minutes
make bench BENCH=floor      one of them
"""

import subprocess
import sys

BENCHES = ["cost", "idle", "growth", "floor", "patterns", "stages", "lateness", "cold_start"]


def main() -> None:
    for name in sys.argv[1:] or BENCHES:
        print(f"\n== {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"bench.{name}", "--write"], check=True)


if __name__ == "__main__":
    main()
