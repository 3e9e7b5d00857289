"""What a cold start takes of CPU, against `import boto3`, and how large the package is. It deploys nothing.

    .venv/bin/python -m bench.cold_start [--runs 15] [--python /usr/bin/python3.13] [--write]

Each run is an interpreter of its own that sees the package and boto3, and nothing else. It loads boto3 first and the
function then: so what else the machine does slows both, and their ratio stays.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import boto3

from bench.page import markdown, options, publish
from infra.bundling import bundle
from shared.settings import AuditSettings, ExecuteSettings, SubmitSettings, TickSettings

VARIABLES = {
    "tick": TickSettings.variables().values(),
    "execute": ExecuteSettings.variables().values(),
    "audit": AuditSettings.variables().values(),
    "submit": SubmitSettings.variables().values(),
}
RUNTIME = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six.py")
PARTS = {
    "Powertools": ("aws_lambda_powertools", "typing_extensions"),
    "pydantic": ("pydantic", "pydantic_core", "annotated_types", "typing_inspection"),
    "model, rules": ("shared.model", "shared.rules"),
    "store, queue": ("shared.store", "shared.queue"),
    "flows, targets": ("shared.flows", "shared.targets"),
    "wiring, settings": ("shared",),
    "the function": ("functions",),
}
OTHERS = "others"
FIRST_JOB = "submit, its first job read"  # the start, and what the first body loads
STARTS = (*VARIABLES, FIRST_JOB)

# Prints CPU seconds: of boto3, of all else, of making clients; in parts also of each module without those it loads.
PROGRAM = """
import datetime, json, resource, sys, time
from importlib import _bootstrap_external as external, import_module

def user():
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime

own, stack = {}, []

def watched(loader, name):
    plain = getattr(loader, name)
    def run(self, module):
        began = time.process_time()
        stack.append(0.0)
        try:
            return plain(self, module)
        finally:
            spent, inner = time.process_time() - began, stack.pop()
            own[self.name] = own.get(self.name, 0.0) + spent - inner
            if stack:
                stack[-1] += spent
    setattr(loader, name, run)

if sys.argv[2] == "parts":
    watched(external.SourceFileLoader, "exec_module")
    watched(external.ExtensionFileLoader, "create_module")
    watched(external.ExtensionFileLoader, "exec_module")

began = user()
import boto3
boto3_s, of_boto3 = user() - began, dict(own)

began, clients_s = user(), 0.0
from shared.wiring import base
make = base.clients

def clients():
    global clients_s
    began, clock = user(), time.process_time()
    made = make()
    clients_s += user() - began
    if stack:
        stack[-1] += time.process_time() - clock
    return made

base.clients = clients
import_module(f"functions.{sys.argv[1]}.handler")
if sys.argv[3:] == ["job"]:
    bodies = import_module("functions.submit.bodies")
    job = {"target": {"kind": "python", "handler": "demo.echo"}, "run_at": "2030-01-01T00:00:00Z", "payload": {"a": 1}}
    limits = bodies.Limits(frozenset({"demo.echo"}), 60)
    bodies.read_body(bodies.JobBody, job, limits, datetime.datetime.now(datetime.UTC))
imports_s = user() - began - clients_s

parts = {name: spent for name, spent in own.items() if name not in of_boto3}
seconds = {"boto3_s": boto3_s, "imports_s": imports_s, "clients_s": clients_s}
print(json.dumps({**seconds, "boto3_own_s": sum(of_boto3.values()), "own_s": parts}))
"""


@dataclass(frozen=True, slots=True)
class Start:
    """CPU seconds of one start. Those of `own_s` and `boto3_own_s` are only there when parts were asked for."""

    boto3_s: float
    imports_s: float  # beyond boto3, without the clients
    clients_s: float
    boto3_own_s: float
    own_s: dict[str, float]  # of each module, without those that it loads


@dataclass(frozen=True, slots=True)
class Bench:
    """What is measured: a Python, the package with and without bytecode, and boto3 as the runtime has it."""

    python: str
    package: Path
    bare: Path
    runtime: Path
    runs: int

    def row(self, name: str) -> list[str]:
        """The start of a function, in shares of `import boto3`."""
        pairs = [(self._start(name, self.package), self._start(name, self.bare)) for _ in range(self.runs)]
        compiled, plain = ([start.imports_s / start.boto3_s for start in starts] for starts in zip(*pairs, strict=True))
        clients = [start.clients_s / start.boto3_s for start, _ in pairs]
        ms = [start.imports_s * 1000 for start, _ in pairs]
        shares = (1 + median(compiled), 1 + median(plain), median(clients))
        return [name, *(f"{share:.2f}" for share in shares), f"{median(ms):.0f}"]

    def parts(self, name: str) -> list[str]:
        """Where the imports of a function go, in shares of `import boto3`."""
        shares: dict[str, list[float]] = {part: [] for part in (*PARTS, OTHERS)}
        for _ in range(self.runs):
            start = self._start(name, self.package, "parts")
            found = dict.fromkeys(shares, 0.0)
            for module, seconds in start.own_s.items():
                found[_part(module)] += seconds / start.boto3_own_s
            for part, share in found.items():
                shares[part].append(share)
        return [name, *(f"{max(0.0, median(found)):.2f}" for found in shares.values())]

    def _start(self, name: str, package: Path, how: str = "whole") -> Start:
        path = f"import sys; sys.path[:0] = [{str(package)!r}, {str(self.runtime)!r}]\n"
        env = {"AWS_DEFAULT_REGION": "us-east-1", "POWERTOOLS_METRICS_NAMESPACE": "Duetime"}
        function, *job = name.split(",")
        env |= dict.fromkeys(VARIABLES[function], "1")
        # -S: nothing of this environment is in sight; -B: a run leaves no bytecode to the next.
        command = [self.python, "-I", "-S", "-B", "-c", path + PROGRAM, function, how, *(["job"] if job else [])]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        return Start(**json.loads(done.stdout))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--runs", type=int, default=15, help="interpreters a figure; the median is shown")
    parser.add_argument("--python", default=sys.executable, help="the Python to measure")
    chosen = parser.parse_args()
    os.environ["PATH"] = f"{Path(chosen.python).parent}:{os.environ['PATH']}"  # where bundling looks for it
    package = bundle("x86_64" if os.uname().machine == "x86_64" else "arm64", _version(chosen.python))
    try:
        with tempfile.TemporaryDirectory() as scratch:
            bare = Path(scratch, "bare")
            shutil.copytree(package, bare, ignore=shutil.ignore_patterns("__pycache__"))
            bench = Bench(chosen.python, package, bare, _runtime(Path(scratch, "runtime"), chosen.python), chosen.runs)
            head = ["function", "with `import boto3`", "without bytecode", "clients, beside", "own imports, ms here"]
            tables = {
                "cold_start": markdown(head, [bench.row(name) for name in STARTS]),
                "cold_start_parts": markdown(["function", *PARTS, OTHERS], [bench.parts(name) for name in STARTS]),
                "package": markdown(["package", "zipped, MB", "unpacked, MB"], _sizes(package, bare)),
            }
    finally:
        shutil.rmtree(package)
    publish(tables, chosen.write)


def _version(python: str) -> str:
    command = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _runtime(folder: Path, python: str) -> Path:
    """boto3 as Lambda's runtime has it beside the function, with its bytecode."""
    site = Path(boto3.__path__[0]).parent
    for name in RUNTIME:
        if (site / name).is_dir():
            shutil.copytree(site / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(site / name, folder / name)
    subprocess.run([python, "-I", "-m", "compileall", "-qq", str(folder)], check=True)
    return folder


def _part(module: str) -> str:
    """The part that `module` belongs to: the longest name that fits."""
    names = [(name, part) for part, names in PARTS.items() for name in names]
    fitting = [(len(name), part) for name, part in names if f"{module}.".startswith(f"{name}.")]
    return max(fitting)[1] if fitting else OTHERS


def _sizes(package: Path, bare: Path) -> Iterator[list[str]]:
    whole, sources = _zipped(package.rglob("*"), package), _zipped(bare.rglob("*"), bare)
    yield ["all", f"{whole[0]:.2f}", f"{whole[1]:.1f}"]
    yield ["of it bytecode", f"{whole[0] - sources[0]:.2f}", f"{whole[1] - sources[1]:.1f}"]
    found = [(path.name, _zipped([path, *path.rglob("*")], package)) for path in package.iterdir()]
    for name, (zipped, unpacked) in sorted(found, key=lambda row: -row[1][0])[:8]:
        yield [f"`{name}`", f"{zipped:.2f}", f"{unpacked:.1f}"]


def _zipped(paths: Iterable[Path], root: Path) -> tuple[float, float]:
    """MB of the files among `paths`, zipped and not."""
    files = [path for path in paths if path.is_file()]
    with tempfile.TemporaryFile() as out:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, file.relative_to(root))
        return out.tell() / 1e6, sum(file.stat().st_size for file in files) / 1e6


if __name__ == "__main__":
    main()
