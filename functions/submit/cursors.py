"""Cursors: positions of a list, signed and bound to the list they are of. It never knows what a position means."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from itsdangerous import BadData, URLSafeSerializer

from functions.submit import strict_json
from functions.submit.strict_json import show
from shared.flows.walks import Position
from shared.model.errors import InputError

FORMAT = 1  # grows when positions come to mean something else: those of before are then refused
MAX_LENGTH = 2048

_SEALED = re.compile(r"[A-Za-z0-9_.-]+\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cursors:
    """The cursors of one list. `secret` gives the deployment's; `bound_to` says all that makes the list this one."""

    secret: Callable[[], str]
    bound_to: Sequence[object]

    def seal(self, position: Position | None) -> str | None:
        """The cursor that leads to `position`; None at the list's end."""
        return None if position is None else str(self._serializer().dumps(position))

    def open(self, text: str | None) -> Position | None:
        """The position that `text` leads to; None at the list's beginning.

        Raises InputError (`cursor`) for a text that is none, was changed, or is of another list or format.
        """
        if text is None:
            return None
        if len(text) > MAX_LENGTH or not _SEALED.match(text):
            raise not_ours(text)
        try:
            position: object = self._serializer().loads(text)
        except BadData:
            raise not_ours(text) from None
        if not isinstance(position, list) or not position or not all(isinstance(part, str | int) for part in position):
            raise not_ours(text)
        if self.seal(tuple(position)) != text:  # base64 has several texts for the same bytes: only the one given out
            raise not_ours(text)
        return tuple(position)

    def _serializer(self) -> URLSafeSerializer:
        salt = strict_json.write(["duetime.cursor", FORMAT, *self.bound_to])
        return URLSafeSerializer(self.secret(), salt, signer_kwargs={"digest_method": sha256})


def not_ours(text: str) -> InputError:
    """The refusal of a cursor."""
    return InputError("cursor", f"{show(text)} is not one that this API gave for this very list; begin without one")
