"""Texts of others, made safe to print: nothing in them can move the cursor, hide or turn around. Never used on --json.

What a terminal would act on or not show is written as an escape, `\\x1b` or `\\u202e`.
"""

import unicodedata

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_EMPTY = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")  # letters and marks without a shape


def visible(text: str, keep: str = "") -> str:
    """`text` with all that does not show as itself escaped, but for the characters in `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char in keep or _shows(char) else _escaped(char) for char in text)


def span(seconds: float) -> str:
    """A length of time as people say it: `0.31 s`, `5 min 12 s`, `3 h 05 min`, `412 d`, `6.9 y`."""
    if seconds < 0:
        return f"-{span(-seconds)}"
    if seconds < 100:
        return f"{seconds:.2f} s"
    whole = int(seconds)
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 48 * 3_600:
        return f"{whole // 3_600} h {whole % 3_600 // 60:02} min"
    days = whole // 86_400
    return f"{days} d" if days < 730 else f"{days / 365.25:.1f} y"


def _shows(char: str) -> bool:
    if char.isascii() or char in _EMPTY:
        return char.isprintable() and char.isascii()
    if "\U000e0100" <= char <= "\U000e01ef":  # variation selectors, of which hundreds can hide behind one letter
        return False
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _escaped(char: str) -> str:
    code = ord(char)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return _NAMED.get(char) or (f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}")
