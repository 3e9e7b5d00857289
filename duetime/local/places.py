"""Where things lie: the project's root, and what a state directory holds. It never creates or deletes anything."""

from dataclasses import dataclass
from pathlib import Path

from duetime.local.errors import SetUpError

MARK = "cdk.json"


def project_root(start: Path | None = None) -> Path:
    """The nearest directory from `start` (default: where we are) upwards with a cdk.json; else this package's own.

    Raises SetUpError when there is none: the local runtime deploys the stack from its sources.
    """
    beginnings = [(start or Path.cwd()).resolve(), Path(__file__).resolve().parent]
    for beginning in beginnings:
        for directory in (beginning, *beginning.parents):
            if (directory / MARK).is_file() and (directory / "infra").is_dir():
                return directory
    raise SetUpError(f"no {MARK} found from {beginnings[0]} upwards: run this inside a checkout of Duetime")


@dataclass(frozen=True, slots=True)
class StateDir:
    """One local Duetime's files. Two at a time cannot share them."""

    path: Path

    @property
    def lock(self) -> Path:
        """Held by the process that runs it, for as long as it lives."""
        return self.path / "up.lock"

    @property
    def status(self) -> Path:
        """Who runs it, on which ports, and how far it is."""
        return self.path / "up.json"

    @property
    def log(self) -> Path:
        """What a detached `duetime up` says."""
        return self.path / "up.log"

    @property
    def emulator(self) -> Path:
        """The local AWS's state."""
        return self.path / "aws"

    @property
    def emulator_log(self) -> Path:
        return self.path / "aws.log"

    @property
    def deployed(self) -> Path:
        """What was deployed last: a hash of all that goes in, and the stack's outputs."""
        return self.path / "deployed.json"

    @property
    def credentials(self) -> Path:
        """The keys of the local IAM users."""
        return self.path / "credentials.json"

    @property
    def assembly(self) -> Path:
        """The synthesised stack."""
        return self.path / "cdk.out"

    @property
    def deploy_log(self) -> Path:
        return self.path / "deploy.log"
