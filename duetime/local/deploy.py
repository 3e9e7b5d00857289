"""Deploys the real stack to the local AWS with the real CDK command. It never deploys what has not changed."""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3

from duetime.local.environment import last_lines, run_tool, tools_end_on_failure
from duetime.local.errors import SetUpError
from duetime.local.places import StateDir
from duetime.signing import Credentials

ACCOUNT = "000000000000"
REGION = "us-east-1"
STACK = "Duetime"
ROOT_CREDENTIALS = Credentials(access_key_id=ACCOUNT, secret_access_key="local")
DEPLOY_S = 300
_SOURCES = ("infra", "shared", "functions", "handlers")
_FILES = ("cdk.json", "package-lock.json", "requirements-functions.lock", "requirements.lock")
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "UV_CACHE_DIR", "XDG_CACHE_HOME")
_INDEXES = ("UV_", "PIP_", "SSL_CERT")  # how the bundling of the functions reaches a package index


def local_context() -> dict[str, str]:
    """The deploy-time choices that the host forces: its functions run on this machine's Python and processor."""
    arm = platform.machine().lower() in {"arm64", "aarch64"}
    return {
        "python_version": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "architecture": "arm64" if arm else "x86_64",
        "removal_policy": "destroy",
    }


class Deployment:
    """The stack of `root`, on the local AWS at `endpoint`."""

    def __init__(self, root: Path, state: StateDir, endpoint: str, context: Mapping[str, str]) -> None:
        self._root = root
        self._state = state
        self._endpoint = endpoint
        self._context = {**local_context(), **context}

    def client(self, service: str) -> Any:  # boto3 makes its clients at run time
        """A boto3 client of the local AWS, with all rights (until IAM is enforced)."""
        return boto3.client(
            service,  # type: ignore[call-overload]
            endpoint_url=self._endpoint,
            region_name=REGION,
            aws_access_key_id=ROOT_CREDENTIALS.access_key_id,
            aws_secret_access_key=ROOT_CREDENTIALS.secret_access_key,
        )

    def inputs(self) -> str:
        """A hash of all that decides what is deployed."""
        digest = hashlib.sha256(json.dumps(self._context, sort_keys=True).encode())
        for path in self._input_files():
            content = path.read_bytes()
            digest.update(f"{path.relative_to(self._root)}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()

    def current_outputs(self) -> dict[str, str] | None:
        """The outputs of the last deployment, if nothing that goes in has changed since; else None."""
        try:
            kept = json.loads(self._state.deployed.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return kept["outputs"] if kept.get("inputs") == self.inputs() else None

    def synthesise(self, cdk: Path) -> None:
        """Write the stack's template and assets. Needs no AWS. Raises SetUpError."""
        self._run(cdk, "synth", "--quiet", "--output", str(self._state.assembly), *self._context_options())

    def bootstrap(self, cdk: Path) -> None:
        """Prepare the account for the CDK, as a person does once in a real one. Raises SetUpError."""
        self._run(cdk, "bootstrap", f"aws://{ACCOUNT}/{REGION}", app=False)

    def deploy(self, cdk: Path) -> dict[str, str]:
        """Synthesise, bootstrap, deploy; answers the stack's outputs. Raises SetUpError with what the command said."""
        inputs = self.inputs()
        self._state.deployed.unlink(missing_ok=True)
        with ThreadPoolExecutor(2) as side_by_side, tools_end_on_failure():
            for step in [side_by_side.submit(self.synthesise, cdk), side_by_side.submit(self.bootstrap, cdk)]:
                step.result()
        self._run(cdk, "deploy", STACK, "--app", str(self._state.assembly), "--require-approval", "never", app=False)
        self._set_time_to_live()
        outputs = self._outputs()
        self._state.deployed.write_text(json.dumps({"inputs": inputs, "outputs": outputs}, indent=2))
        return outputs

    def _outputs(self) -> dict[str, str]:
        (stack,) = self.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}

    def _set_time_to_live(self) -> None:
        """The emulator drops what CloudFormation says about a table's TTL."""
        cloudformation, dynamodb = self.client("cloudformation"), self.client("dynamodb")
        template = cloudformation.get_template(StackName=STACK)["TemplateBody"]
        resources = (template if isinstance(template, dict) else json.loads(template))["Resources"]
        for name, resource in resources.items():
            wanted = resource.get("Properties", {}).get("TimeToLiveSpecification")
            if wanted is None:
                continue
            found = cloudformation.describe_stack_resource(StackName=STACK, LogicalResourceId=name)
            table = found["StackResourceDetail"]["PhysicalResourceId"]
            if (
                dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]["TimeToLiveStatus"]
                != "ENABLED"
            ):
                dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=wanted)

    def _input_files(self) -> Iterator[Path]:
        for name in _SOURCES:
            yield from sorted(
                path
                for path in (self._root / name).rglob("*")
                if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
            )
        yield from (self._root / name for name in _FILES if (self._root / name).is_file())

    def _context_options(self) -> list[str]:
        return [part for key, value in self._context.items() for part in ("--context", f"{key}={value}")]

    def _run(self, cdk: Path, *arguments: str, app: bool = True) -> None:
        command = [str(cdk), *arguments, "--no-color", "--ci"]
        with self._state.deploy_log.open("a") as log:
            log.write(f"$ cdk {' '.join(arguments)}\n")
        directory = self._root if app else self._state.path
        code, said = run_tool(command, directory, self._command_environment(), DEPLOY_S)
        with self._state.deploy_log.open("a") as log:
            log.write(said)
        if code is None:
            raise SetUpError(f"cdk {arguments[0]} did not end within {DEPLOY_S} s; see {self._state.deploy_log}")
        if code:
            raise SetUpError(
                f"cdk {arguments[0]} failed (the whole of it: {self._state.deploy_log}):\n{last_lines(said)}"
            )

    def _command_environment(self) -> dict[str, str]:
        """Nothing of the person's own AWS set-up may reach the command: it must only ever see the local AWS."""
        ours = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(_INDEXES)}
        ours["PATH"] = os.pathsep.join([str(Path(sys.prefix) / "bin"), ours.get("PATH", os.defpath)])
        return ours | {
            "AWS_ENDPOINT_URL": self._endpoint,
            "AWS_ACCESS_KEY_ID": ROOT_CREDENTIALS.access_key_id,
            "AWS_SECRET_ACCESS_KEY": ROOT_CREDENTIALS.secret_access_key,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "CDK_DISABLE_VERSION_CHECK": "1",
            "CDK_DISABLE_CLI_TELEMETRY": "true",
        }
