"""Error texts that fit into a run's item. It never raises, whatever the exception at hand does."""

MAX_ERROR_BYTES = 512


def describe(error: BaseException) -> str:
    """`ValueError: text`, cut to MAX_ERROR_BYTES."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  a user's exception may do anything
        text = "(it has no readable text)"
    return cut(f"{name}: {text}" if text else name)


def cut(text: str) -> str:
    """`text` with at most MAX_ERROR_BYTES of UTF-8, cut between characters, `…` at the end if it was cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_ERROR_BYTES:
        return data.decode()
    return data[: MAX_ERROR_BYTES - 3].decode("utf-8", "ignore") + "…"
