"""How many random cases are tried: a few hundred, always the same; thousands of new ones with AGENTKIT_FUZZ=5000."""

import os

from hypothesis import HealthCheck, settings

_FUZZ = int(os.environ.get("AGENTKIT_FUZZ", "0"))

# Building an agent takes milliseconds, and many a random stack is one that the reference cannot run.
_SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
settings.register_profile("agentkit", deadline=None, derandomize=not _FUZZ, database=None, suppress_health_check=_SLOW)
settings.load_profile("agentkit")


def cases(ordinary: int) -> int:
    """How many cases a property is tried with: so many, or as many as AGENTKIT_FUZZ says."""
    return _FUZZ or ordinary
