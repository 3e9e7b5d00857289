"""All that is searched."""

from tests.model.configurations_gates import GATES
from tests.model.configurations_protocol import PROTOCOL
from tests.model.configurations_verbs import VERBS

CONFIGURATIONS = (*PROTOCOL, *VERBS, *GATES)
