"""The local AWS as it is driven: what it keeps, when it acts, what its functions see, where it listens."""

import base64
import contextlib
import io
import json
import os
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from duetime.local.emulator import Emulator
from duetime.local.environment import emulator_python
from duetime.local.errors import PortInUseError
from duetime.local.places import StateDir, project_root

pytestmark = pytest.mark.timeout(180)
ROLE = "arn:aws:iam::000000000000:role/any"


@pytest.fixture(scope="module")
def python() -> Path:
    return emulator_python(project_root())


@pytest.fixture
def emulator(python: Path, tmp_path: Path) -> Iterator[Emulator]:
    emulator = Emulator(python, StateDir(tmp_path), 0)
    emulator.start()
    yield emulator
    emulator.stop()


def client(emulator: Emulator, service: str) -> Any:
    return boto3.client(service, endpoint_url=emulator.url)  # type: ignore[call-overload]


def make_table(emulator: Emulator) -> Any:
    dynamodb = client(emulator, "dynamodb")
    dynamodb.create_table(
        TableName="numbers",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )
    return dynamodb


def item(number: str) -> dict[str, dict[str, str]]:
    return {"pk": {"S": number}, "sk": {"S": "-"}}


def numbers(emulator: Emulator) -> set[int]:
    pages = client(emulator, "dynamodb").get_paginator("scan").paginate(TableName="numbers", ConsistentRead=True)
    return {int(item["pk"]["S"]) for page in pages for item in page["Items"]}


def make_function(emulator: Emulator, name: str, source: str) -> str:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("code.py", source)
    made = client(emulator, "lambda").create_function(
        FunctionName=name,
        Runtime="python3.11",
        Role=ROLE,
        Handler="code.handler",
        Code={"ZipFile": packed.getvalue()},
        Timeout=30,
    )
    return str(made["FunctionArn"])


def invoke(emulator: Emulator, name: str) -> Any:
    return json.loads(client(emulator, "lambda").invoke(FunctionName=name)["Payload"].read())


def listening(pid: int) -> set[str]:
    """The local addresses, as the kernel writes them, on which the process listens."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(descriptor).removeprefix("socket:[").removesuffix("]"))
        except FileNotFoundError:
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(fields[1].partition(":")[0])
    return found


def test_it_listens_on_loopback_only(emulator: Emulator) -> None:
    for service, call in {"transfer": "list_servers", "iot": "list_things", "rds": "describe_db_instances"}.items():
        getattr(client(emulator, service), call)()  # what could open a port of its own is loaded
    assert emulator.pid
    assert listening(emulator.pid) == {"0100007F"}


def test_a_clean_end_loses_nothing(emulator: Emulator) -> None:
    make_table(emulator).put_item(TableName="numbers", Item=item("1"))
    emulator.stop()
    emulator.start()
    assert numbers(emulator) == {1}


def test_it_ends_by_itself_and_saves_when_who_started_it_is_gone(emulator: Emulator) -> None:
    make_table(emulator).put_item(TableName="numbers", Item=item("1"))
    process = emulator._process
    assert process
    assert process.stdin
    process.stdin.close()
    assert process.wait(20) == 0
    emulator.start()
    assert numbers(emulator) == {1}


def test_a_kill_loses_at_most_the_last_seconds_and_all_services_are_of_one_moment(emulator: Emulator) -> None:
    dynamodb, sqs = make_table(emulator), client(emulator, "sqs")
    queue = sqs.create_queue(QueueName="numbers")["QueueUrl"]
    written: list[tuple[float, int]] = []
    until = time.monotonic() + 13
    number = 0
    while time.monotonic() < until:  # each message is sent before its item is written
        number += 1
        sqs.send_message(QueueUrl=queue, MessageBody=str(number))
        dynamodb.put_item(TableName="numbers", Item=item(str(number)))
        written.append((time.monotonic(), number))
    emulator.kill()
    killed_at = time.monotonic()
    emulator.start()
    kept = numbers(emulator)
    assert {
        number for at, number in written if at < killed_at - 8
    } <= kept  # 5 s, and the time of a save on a busy host
    attributes = client(emulator, "sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    assert len(kept) <= int(attributes["ApproximateNumberOfMessages"]) <= len(kept) + 1


def test_schedules_fire_within_a_second_or_so(emulator: Emulator) -> None:
    sqs = client(emulator, "sqs")
    queue = sqs.create_queue(QueueName="fired")["QueueUrl"]
    due = (datetime.now(UTC) + timedelta(seconds=2)).replace(microsecond=0)
    client(emulator, "scheduler").create_schedule(
        Name="once",
        ScheduleExpression=f"at({due:%Y-%m-%dT%H:%M:%S})",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": "arn:aws:sqs:us-east-1:000000000000:fired", "RoleArn": ROLE},
    )
    while not sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=1).get("Messages"):
        assert datetime.now(UTC) < due + timedelta(seconds=20)
    assert timedelta() <= datetime.now(UTC) - due < timedelta(seconds=3)


def test_functions_see_neither_the_product_nor_this_process(python: Path, tmp_path: Path) -> None:
    os.environ["DUETIME_TEST_SECRET"] = "not for functions"
    emulator = Emulator(python, StateDir(tmp_path), 0)
    try:
        emulator.start()
        make_function(
            emulator,
            "look",
            """
import importlib.util, os, sys
PRODUCT = ["shared", "functions", "handlers", "duetime", "pydantic", "croniter", "simplejson", "aws_lambda_powertools"]
def handler(event, context):
    return {
        "product": [name for name in PRODUCT if importlib.util.find_spec(name)],
        "boto3": importlib.util.find_spec("boto3") is not None,
        "environment": sorted(os.environ),
        "endpoint": os.environ.get("AWS_ENDPOINT_URL"),
    }
""",
        )
        seen = invoke(emulator, "look")
    finally:
        del os.environ["DUETIME_TEST_SECRET"]
        emulator.stop()
    assert seen["product"] == []
    assert seen["boto3"] is True
    assert seen["endpoint"] == emulator.url
    assert not {"DUETIME_TEST_SECRET", "PYTHONPATH", "VIRTUAL_ENV", "AWS_PROFILE"} & set(seen["environment"])


SLOW = "import os, time\ndef handler(event, context):\n    time.sleep(3)\n    return os.getpid()\n"
QUICK = "import os, time\ndef handler(event, context):\n    time.sleep(0.05)\n    return os.getpid()\n"


def test_calls_that_wait_long_get_processes_of_their_own_and_quick_ones_share(emulator: Emulator) -> None:
    make_function(emulator, "slow", SLOW)
    make_function(emulator, "quick", QUICK)
    invoke(emulator, "quick")
    with ThreadPoolExecutor(12) as pool:
        quick = set(pool.map(lambda _: invoke(emulator, "quick"), range(24)))
        slow = set(pool.map(lambda _: invoke(emulator, "slow"), range(3)))
    assert len(quick) <= 3
    assert len(slow) >= 2


def test_a_queue_feeds_its_function_within_a_second_also_after_a_start_on_another_port(
    python: Path, tmp_path: Path
) -> None:
    emulator = Emulator(python, StateDir(tmp_path), 0)
    emulator.start()
    try:
        make_table(emulator)
        queue = client(emulator, "sqs").create_queue(QueueName="work")["QueueUrl"]
        make_function(
            emulator,
            "work",
            """
import boto3
def handler(event, context):
    for record in event["Records"]:
        boto3.client("dynamodb").put_item(TableName="numbers", Item={"pk": {"S": record["body"]}, "sk": {"S": "-"}})
""",
        )
        arn = "arn:aws:sqs:us-east-1:000000000000:work"
        client(emulator, "lambda").create_event_source_mapping(EventSourceArn=arn, FunctionName="work", BatchSize=10)
        assert seconds_until_done(emulator, queue, 1) < 10
        emulator.stop()
        emulator = Emulator(python, StateDir(tmp_path), 0)
        emulator.start()
        seconds_until_done(emulator, queue, 2)
        assert seconds_until_done(emulator, queue, 3) < 3
    finally:
        emulator.stop()


def test_a_flood_in_one_queue_leaves_a_process_to_another_queue_of_the_same_function(emulator: Emulator) -> None:
    make_table(emulator)
    make_function(
        emulator,
        "shared",
        """
import time
import boto3
def handler(event, context):
    for record in event["Records"]:
        if record["eventSourceARN"].endswith("flooded"):
            time.sleep(60)
        boto3.client("dynamodb").put_item(TableName="numbers", Item={"pk": {"S": record["body"]}, "sk": {"S": "-"}})
""",
    )
    queues = {}
    for name in ("flooded", "quiet"):
        queues[name] = client(emulator, "sqs").create_queue(QueueName=name)["QueueUrl"]
        arn = f"arn:aws:sqs:us-east-1:000000000000:{name}"
        client(emulator, "lambda").create_event_source_mapping(
            EventSourceArn=arn, FunctionName="shared", BatchSize=1, ScalingConfig={"MaximumConcurrency": 50}
        )
    seconds_until_done(emulator, queues["quiet"], 0)  # the first processes are there
    for number in range(100, 130):
        client(emulator, "sqs").send_message(QueueUrl=queues["flooded"], MessageBody=str(number))
    for number in range(1, 6):
        time.sleep(1)
        assert seconds_until_done(emulator, queues["quiet"], number) < 5
    assert flight(emulator, queues["flooded"]) >= 3, "the flood has got more processes than it had"


def flight(emulator: Emulator, queue: str) -> int:
    answer = client(emulator, "sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])
    return int(answer["Attributes"]["ApproximateNumberOfMessagesNotVisible"])


def seconds_until_done(emulator: Emulator, queue: str, number: int) -> float:
    """From the end of the message's delay of 1 s on."""
    client(emulator, "sqs").send_message(QueueUrl=queue, MessageBody=str(number), DelaySeconds=1)
    due = time.monotonic() + 1
    while number not in numbers(emulator):
        assert time.monotonic() < due + 60
        time.sleep(0.05)
    return time.monotonic() - due


def test_a_port_that_is_taken_is_told_with_the_reason(emulator: Emulator, python: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    second = Emulator(python, StateDir(tmp_path / "other"), emulator.port)
    with pytest.raises(PortInUseError, match=f"port {emulator.port} is taken"):
        second.start()


BUSY = """
import os, subprocess, sys, time
def handler(event, context):
    open(f"{os.environ['LAMBDA_TASK_ROOT']}/{os.getpid()}.busy", "w").close()
    time.sleep(100)
"""
DAEMON = """
    sleep = "import time; time.sleep(100)"
    subprocess.Popen([sys.executable, "-c", sleep, os.environ["LAMBDA_TASK_ROOT"]], start_new_session=True)
"""


def keep_busy(emulator: Emulator, state: Path) -> None:
    """Ten messages, each of which holds its function for long; returns when the first are held."""
    queue = client(emulator, "sqs").create_queue(QueueName="busy", Attributes={"VisibilityTimeout": "200"})["QueueUrl"]
    make_function(emulator, "busy", BUSY.replace("    open", f"{DAEMON}    open"))
    arn = "arn:aws:sqs:us-east-1:000000000000:busy"
    client(emulator, "lambda").create_event_source_mapping(EventSourceArn=arn, FunctionName="busy", BatchSize=1)
    for number in range(10):
        client(emulator, "sqs").send_message(QueueUrl=queue, MessageBody=str(number))
    until = time.monotonic() + 30
    while len(list(state.rglob("*.busy"))) < 2:
        assert time.monotonic() < until
        time.sleep(0.05)


def living(state: Path) -> set[str]:
    """The command lines of all processes that name the state directory."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.add(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return {line for line in found if str(state) in line}


def test_when_it_has_ended_nothing_of_its_functions_lives_and_long_calls_are_not_waited_for(
    emulator: Emulator, tmp_path: Path
) -> None:
    keep_busy(emulator, tmp_path)
    assert len(living(tmp_path)) >= 3
    begun = time.monotonic()
    emulator.stop()
    assert living(tmp_path) == set()
    assert time.monotonic() - begun < 14  # it ended by itself: it would have been killed after 15 s


def test_its_functions_end_with_it_also_when_it_is_killed(emulator: Emulator, tmp_path: Path) -> None:
    make_function(emulator, "held", BUSY)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(invoke, emulator, "held")
        until = time.monotonic() + 30
        while not list(tmp_path.rglob("*.busy")):
            assert time.monotonic() < until
            time.sleep(0.05)
        emulator.kill()
        until = time.monotonic() + 5
        while living(tmp_path):
            assert time.monotonic() < until, living(tmp_path)
            time.sleep(0.05)


def test_a_body_that_is_no_text_reaches_the_function_byte_for_byte(emulator: Emulator) -> None:
    function = make_function(
        emulator,
        "echo",
        "import json\n"
        "def handler(event, context):\n"
        "    return json.dumps({'body': event['body'], 'coded': event['isBase64Encoded']})\n",
    )
    gateway = client(emulator, "apigatewayv2")
    api = gateway.create_api(Name="echo", ProtocolType="HTTP")["ApiId"]
    integration = gateway.create_integration(
        ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=function, PayloadFormatVersion="2.0"
    )
    gateway.create_route(ApiId=api, RouteKey="$default", Target=f"integrations/{integration['IntegrationId']}")
    gateway.create_stage(ApiId=api, StageName="$default", AutoDeploy=True)

    def answer(body: bytes) -> Any:
        url = f"{emulator.url}/_aws/execute-api/{api}/$default/"
        return httpx.post(url, content=body, headers={"Content-Type": "application/json"}, timeout=30).json()

    assert answer('{"a": "ä"}'.encode()) == {"body": '{"a": "ä"}', "coded": False}
    coded = answer(b'{"a": "\xff\xfe"}')
    assert coded["coded"] is True
    assert base64.b64decode(coded["body"]) == b'{"a": "\xff\xfe"}'
