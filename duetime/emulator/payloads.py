"""Where ministack 1.5.33 hands a request's body on as other bytes than came. It never judges a body."""

import importlib
from contextvars import ContextVar
from typing import Any

_not_text: ContextVar[bool] = ContextVar("not_text", default=False)


def as_on_aws() -> None:
    """A body that is no UTF-8 reaches the function base64-encoded, byte for byte, whatever its content type says.

    ministack would put U+FFFD in the place of what it cannot decode, and the function could not tell.
    """
    gateway: Any = importlib.import_module("ministack.services.apigateway")  # it has no types
    invoke, is_text = gateway._invoke_lambda_proxy, gateway._v2_request_body_is_text

    async def invoke_with_all_bytes(*args: Any, **kwargs: Any) -> Any:
        body = kwargs.get("body", args[6] if len(args) > 6 else b"")
        token = _not_text.set(not _is_utf8(body))
        try:
            return await invoke(*args, **kwargs)
        finally:
            _not_text.reset(token)

    gateway._invoke_lambda_proxy = invoke_with_all_bytes
    gateway._v2_request_body_is_text = lambda content_type: not _not_text.get() and is_text(content_type)


def _is_utf8(body: object) -> bool:
    try:
        return not isinstance(body, bytes) or body.decode() is not None
    except UnicodeDecodeError:
        return False
