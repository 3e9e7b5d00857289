"""All weakened variants."""

from tests.model import weakened_gates, weakened_protocol, weakened_verbs
from tests.model.weakening import WEAKENED, Weakened

__all__ = ["WEAKENED", "Weakened", "weakened_gates", "weakened_protocol", "weakened_verbs"]
