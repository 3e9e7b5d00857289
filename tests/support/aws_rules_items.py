"""AWS's limits on DynamoDB items, keys and values. It only says what is wrong; aws_rules raises it."""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from shared.store import keys

_GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
# Items of 400 KB, keys of 2,048 and 1,024 bytes, 32 levels, numbers of 38 digits from 1E-130 to 9.99E+125.
CONSTRAINTS = _GUIDE + "Constraints.html"
TYPES = _GUIDE + "HowItWorks.NamingRulesDataTypes.html"
SIZES = _GUIDE + "CapacityUnitCalculations.html"
INDEX_KEYS = _GUIDE + "GSI.html"
TTL = _GUIDE + "howitworks-ttl.html"

MAX_ITEM_BYTES = 400 * 1024
MAX_DIGITS = 38
MAX_DEPTH = 32
KEY_BYTES = {keys.PK: 2048, keys.SK: 1024}
INDEXES = {  # name → its partition key, its sort key, what it projects beside all keys
    keys.DUE_INDEX: (keys.DUE_KEY, keys.DUE_AT, keys.DUE_PROJECTION),
    keys.LIST_INDEX: (keys.LIST_KEY, keys.LIST_AT, ()),
}
INDEX_KEY_BYTES = {name: size for key, at, _ in INDEXES.values() for name, size in ((key, 2048), (at, 1024))}
_LATEST_TTL = 10**11  # seconds until the year 5138: more is milliseconds

Value = Mapping[str, Any]
Item = Mapping[str, Value]


def item_problems(item: Item) -> Iterator[str]:
    """A whole item, as PutItem sends it."""
    for name in KEY_BYTES:
        if name not in item:
            yield f"the item has no key attribute {name} ({CONSTRAINTS})"
    for name, value in item.items():
        yield from attribute_problems(name, value)
    size = item_bytes(item)
    if size > MAX_ITEM_BYTES:
        yield f"an item holds at most {MAX_ITEM_BYTES} bytes, not {size} ({CONSTRAINTS})"


def key_problems(key: Item) -> Iterator[str]:
    """The Key of a request: exactly the key attributes of the table."""
    if set(key) != set(KEY_BYTES):
        yield f"a key is exactly {sorted(KEY_BYTES)}, not {sorted(key)} ({CONSTRAINTS})"
    for name, value in key.items():
        yield from attribute_problems(name, value)


def attribute_problems(name: str, value: Value) -> Iterator[str]:
    """One attribute that is written under `name`."""
    yield from value_problems(value, name)
    most = (KEY_BYTES | INDEX_KEY_BYTES).get(name)
    if most is not None:
        text = value.get("S")
        if not isinstance(text, str) or not text:
            page = CONSTRAINTS if name in KEY_BYTES else INDEX_KEYS
            yield f"{name} is a key: it must be a string that is not empty, not {_shown(value)} ({page})"
        elif len(text.encode()) > most:
            yield f"{name} must be at most {most} bytes, not {len(text.encode())} ({CONSTRAINTS})"
    if name == keys.TTL_ATTRIBUTE and not _is_moment(value):
        yield f"{name} must be a number of whole seconds since 1970, not {_shown(value)}: it would never expire ({TTL})"


def _is_moment(value: Value) -> bool:
    text = str(value.get("N", ""))
    return text.isdigit() and int(text) < _LATEST_TTL


def value_problems(value: Value, where: str, depth: int = 1) -> Iterator[str]:
    """One value and all in it."""
    if len(value) != 1:
        yield f"{where} must be one value with one type, not {dict(value)} ({TYPES})"
        return
    [(kind, content)] = value.items()
    if depth > MAX_DEPTH:
        yield f"{where} is nested deeper than {MAX_DEPTH} levels ({CONSTRAINTS})"
    elif kind in ("N", "NS"):
        for number in [content] if kind == "N" else content:
            yield from _number(number, where)
    elif kind == "L":
        for index, member in enumerate(content):
            yield from value_problems(member, f"{where}[{index}]", depth + 1)
    elif kind == "M":
        for name, member in content.items():
            yield from value_problems(member, f"{where}.{name}", depth + 1)
    elif kind == "NULL" and content is not True:
        yield f"{where}: NULL can only be true ({TYPES})"
    if kind in ("SS", "NS", "BS"):
        yield from _set(kind, content, where)


def _set(kind: str, members: list[Any], where: str) -> Iterator[str]:
    if not members:
        yield f"{where} is an empty set ({TYPES})"
    if len(set(members)) < len(members) or (kind == "NS" and len(set(map(_decimal, members))) < len(members)):
        yield f"{where} is a set with a value twice ({TYPES})"
    if kind != "NS" and not all(members):
        yield f"{where} is a set with an empty value ({TYPES})"


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _number(text: str, where: str) -> Iterator[str]:
    number = _decimal(text) if isinstance(text, str) else None
    if number is None or text != text.strip():
        yield f"{where}: {text!r} is not a number ({TYPES})"
        return
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    if len(digits) > MAX_DIGITS:
        yield f"{where}: a number has at most {MAX_DIGITS} significant digits, not {len(digits)} ({TYPES})"
    if number and not -130 <= number.adjusted() <= 125:
        yield f"{where}: the magnitude of {text} is outside 1E-130 to 9.99E+125 ({TYPES})"


def item_bytes(item: Item) -> int:
    """The size AWS counts: names and values, see SIZES."""
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def value_bytes(value: Value) -> int:
    kind: str
    content: Any
    kind, content = next(iter(value.items()), ("S", ""))
    if kind == "S":
        return len(content.encode("utf-8", "surrogatepass"))
    if kind == "N":
        return _number_bytes(content)
    if kind == "B":
        return len(content)
    if kind in ("BOOL", "NULL"):
        return 1
    if kind == "L":
        return 3 + sum(1 + value_bytes(member) for member in content)
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + value_bytes(member) for name, member in content.items())
    return sum(value_bytes({kind[0]: member}) for member in content)


def _number_bytes(text: str) -> int:
    number = _decimal(text)
    if not number:
        return 1
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    return (len(digits) + 1) // 2 + 1 + (number < 0)


def same_item(key: Item) -> tuple[str, ...]:
    """Something equal for two keys of the same item."""
    return tuple(str(key.get(name)) for name in KEY_BYTES)


def _shown(value: Value) -> str:
    text = repr(dict(value))
    return text if len(text) <= 80 else f"{text[:77]}…"
