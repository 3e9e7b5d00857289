"""SigV4 signatures for an API Gateway API. It never sends a request and never looks for credentials by itself."""

from collections.abc import Generator
from dataclasses import dataclass
from urllib.parse import urlsplit

import boto3
import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials

SERVICE = "execute-api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who signs."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None


class NoCredentialsError(Exception):
    """A signature is asked for and nobody is there to sign."""


def signed_headers(method: str, url: str, body: bytes, credentials: Credentials, region: str) -> dict[str, str]:
    """The headers that make a request a signed one: Authorization, X-Amz-Date, and a token if there is one.

    `url` must be exactly the one that is sent; its host and port are part of what is signed.
    """
    request = AWSRequest(method=method, url=url, data=body, headers={"host": urlsplit(url).netloc})
    who = BotocoreCredentials(credentials.access_key_id, credentials.secret_access_key, credentials.session_token)
    SigV4Auth(who, SERVICE, region).add_auth(request)
    return {name: value for name, value in request.headers.items() if name.lower() != "host"}


class SignedAuth(httpx.Auth):
    """Signs each request of an httpx client, with credentials read anew each time: they may be temporary ones."""

    requires_request_body = True

    def __init__(self, region: str | None = None) -> None:
        self._session = boto3.Session()
        self._region = region or self._session.region_name

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        found = self._session.get_credentials()
        if found is None:
            raise NoCredentialsError("no AWS credentials found to sign with; set AWS_PROFILE or AWS_ACCESS_KEY_ID")
        if not self._region:
            raise NoCredentialsError("no AWS region found to sign for; set AWS_REGION")
        frozen = found.get_frozen_credentials()
        who = Credentials(
            access_key_id=frozen.access_key or "",
            secret_access_key=frozen.secret_key or "",
            session_token=frozen.token,
        )
        request.headers.update(signed_headers(request.method, str(request.url), request.content, who, self._region))
        yield request


def region_of(url: str) -> str | None:
    """The region of an API Gateway URL, None for any other: `https://abc.execute-api.eu-west-1.amazonaws.com/`."""
    parts = (urlsplit(url).hostname or "").split(".")
    return parts[2] if len(parts) > 3 and parts[1] == SERVICE and parts[3] == "amazonaws" else None
