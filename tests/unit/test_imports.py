"""What each function loads at its start, name by name: whatever joins these lists is paid for by every cold start.

A name that is missing from a list, or stands in it for nothing, fails alike. Load what few calls need where it is
needed; what it costs is measured by bench/cold_start.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.settings import AuditSettings, ExecuteSettings, SubmitSettings, TickSettings

ROOT = Path(__file__).parents[2]
SETTINGS = {"tick": TickSettings, "execute": ExecuteSettings, "audit": AuditSettings, "submit": SubmitSettings}
EVERYWHERE = "clock queue settings telemetry wiring.base model.errors model.instants model.job model.message model.run"

# Beside boto3 and what it loads itself.
PACKAGES = {
    "tick": "aws_lambda_powertools typing_extensions",
    "execute": "aws_lambda_powertools typing_extensions",
    "audit": "aws_lambda_powertools typing_extensions",
    "submit": "aws_lambda_powertools typing_extensions simplejson itsdangerous",
}
MODULES = {
    "tick": """
        wiring.tick flows.tick flows.ticks flows.claims flows.recover
        rules.lease rules.lifecycle rules.plan rules.sharding rules.slots rules.whole_seconds
        store.codec store.jobs store.journal store.keys store.runs store.shards store.table
    """,
    "execute": """
        wiring.execute flows.execute flows.attempt flows.dead_letter flows.finishes flows.gates flows.together
        flows.workshop
        model.call rules.dependencies rules.lease rules.lifecycle rules.plan rules.retry rules.sharding rules.slots
        rules.void_starts rules.waits
        store.codec store.jobs store.keys store.run_batches store.run_records store.runs store.table
        targets.dispatch targets.python targets.target targets.processes.conversation targets.processes.handle
        targets.processes.kernel targets.processes.limits targets.processes.signal_page targets.processes.texts
    """,
    "audit": """
        wiring.audit flows.audit flows.claims flows.dead_letter flows.letters flows.recover
        rules.lease rules.lifecycle rules.plan rules.sharding rules.slots rules.staleness
        store.codec store.jobs store.journal store.keys store.run_history store.runs store.shards store.table
    """,
    "submit": """
        wiring.api flows.again flows.batch flows.changing flows.claims flows.control flows.dependencies flows.enqueue
        flows.families flows.gates flows.groups flows.inspect flows.rows flows.search flows.shown flows.submit
        flows.walks
        rules.aws_forms rules.changes rules.dependencies rules.durations rules.group_limits rules.instants
        rules.lease rules.lifecycle rules.listing rules.overlap rules.plan rules.sharding rules.slots rules.waits
        rules.zones
        store.children store.codec store.cursor_secret store.groups store.idempotency store.idempotency_record
        store.job_batches store.jobs store.journal store.keys store.listing store.overlaps store.run_history
        store.run_requests store.runs store.shards store.table
        targets.names
    """,
}
PROGRAM = """
import importlib, sys, boto3
before = set(sys.modules)
importlib.import_module(f"functions.{sys.argv[1]}.handler")
files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
print(*{name.partition(".")[0] for name, file in files.items() if "site-packages" in file} - before)
ours = [name for name, file in files.items() if name.startswith("shared.") and not file.endswith("__init__.py")]
print(*(name.removeprefix("shared.") for name in ours))
"""


@pytest.mark.parametrize("name", SETTINGS)
def test_a_start_loads_these_and_no_others(name: str) -> None:
    settings = dict.fromkeys(SETTINGS[name].variables().values(), "1")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name],
        cwd=ROOT,
        env={**os.environ, **settings, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    packages, modules = (set(line.split()) for line in done.stdout.splitlines())
    assert packages == set(PACKAGES[name].split())
    assert modules == {*EVERYWHERE.split(), *MODULES[name].split()}
