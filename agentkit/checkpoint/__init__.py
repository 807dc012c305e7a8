"""Where threads are kept: SQLite, PostgreSQL or memory, from one URL.

```python
from agentkit import create_agent
from agentkit.checkpoint import open

saver = open("sqlite:///agent.db")
agent = create_agent(model, tools, checkpointer=saver)
```
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from agentkit.checkpoint.fence import EPOCH, Lease, Leases
    from agentkit.checkpoint.opening import open
    from agentkit.checkpoint.retention import PruneReport, aprune, prune
    from agentkit.checkpoint.saver import Saver
    from agentkit.checkpoint.threads import Step, ThreadInfo, fork, history, list_threads

__all__ = [
    "EPOCH",
    "Lease",
    "Leases",
    "PruneReport",
    "Saver",
    "Step",
    "ThreadInfo",
    "aprune",
    "fork",
    "history",
    "list_threads",
    "open",
    "prune",
]

_HOMES: typing.Final = {
    "EPOCH": "fence",
    "Lease": "fence",
    "Leases": "fence",
    "PruneReport": "retention",
    "Saver": "saver",
    "Step": "threads",
    "ThreadInfo": "threads",
    "aprune": "retention",
    "fork": "threads",
    "history": "threads",
    "list_threads": "threads",
    "open": "opening",
    "prune": "retention",
}


if not typing.TYPE_CHECKING:  # a checker shall see what is there, and nothing else

    def __getattr__(name: str) -> typing.Any:
        """Import a name where it is first used: some need SQLAlchemy, which comes with the extras."""
        if name not in _HOMES:
            raise AttributeError(f"module 'agentkit.checkpoint' has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f"agentkit.checkpoint.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
