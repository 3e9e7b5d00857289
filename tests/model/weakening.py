"""What a weakened variant is: the store or the flows without one safeguard, and where the search must find that."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.model.configuration import Configuration
from tests.model.configurations import CONFIGURATIONS
from tests.model.flows import Flows
from tests.model.search import Verdict
from tests.model.store import Store


@dataclass(frozen=True)
class Weakened:
    """`breaks`: how the violation that it leads to in `configuration` begins."""

    name: str
    configuration: Configuration
    breaks: str
    store: type[Store] = Store
    flows: type[Flows] = Flows

    def search(self) -> Verdict:
        return self.configuration.search(self.store, self.flows)


WEAKENED: list[Weakened] = []


def named(name: str) -> Configuration:
    return next(one for one in CONFIGURATIONS if one.name == name)


def breaks(breaks: str, where: str) -> Callable[[type], type]:
    """Enter the class below, a store or flows that lack something, under the first line of what it says."""

    def enter(weak: type) -> type:
        name = (weak.__doc__ or weak.__name__).splitlines()[0].rstrip(".")
        if issubclass(weak, Store):
            WEAKENED.append(Weakened(name, named(where), breaks, store=weak))
        else:
            WEAKENED.append(Weakened(name, named(where), breaks, flows=weak))
        return weak

    return enter
