"""Error texts and kinds that fit into a run's item. It never raises, whatever the exception at hand does."""

MAX_ERROR_BYTES = 512
MAX_KINDS = 20
MAX_KIND_LENGTH = 128


def describe(error: BaseException) -> str:
    """`ValueError: text`, cut to MAX_ERROR_BYTES."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  a user's exception may do anything
        text = "(it has no readable text)"
    return cut(f"{name}: {text}" if text else name)


def kinds_of(error: BaseException) -> list[str]:
    """The names of the error's classes, the narrowest first: `["billing.CardError", "CardError", "Exception"]`.

    Those of builtins without their module; mixins that are no exceptions, and BaseException, are left out.
    """
    found: list[str] = []
    for kind in type(error).__mro__:
        if issubclass(kind, BaseException) and kind is not BaseException:
            module = kind.__dict__.get("__module__")
            if isinstance(module, str) and module != "builtins":
                found.append(f"{module}.{kind.__qualname__}")
            found.append(kind.__name__)
    return [name.encode("utf-8", "replace").decode()[:MAX_KIND_LENGTH] for name in found[:MAX_KINDS]]


def cut(text: str) -> str:
    """`text` with at most MAX_ERROR_BYTES of UTF-8, cut between characters, `…` at the end if it was cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_ERROR_BYTES:
        return data.decode()
    return data[: MAX_ERROR_BYTES - 3].decode("utf-8", "ignore") + "…"
