"""Where threads are kept: SQLite, PostgreSQL or memory, from one URL.

```python
from agentkit import create_agent
from agentkit.checkpoint import open

saver = open("sqlite:///agent.db")
agent = create_agent(model, tools, checkpointer=saver)
```
"""

from typing import TYPE_CHECKING, Any

from agentkit.checkpoint.fence import EPOCH, Lease, Leases
from agentkit.checkpoint.opening import open
from agentkit.checkpoint.saver import Saver

if TYPE_CHECKING:
    from agentkit.checkpoint.retention import PruneReport, aprune, prune
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

_RETENTION = ("PruneReport", "aprune", "prune")
_THREADS = ("Step", "ThreadInfo", "fork", "history", "list_threads")


def __getattr__(name: str) -> Any:
    """What needs SQLAlchemy, which comes with the extras, is imported once it is asked for."""
    from importlib import import_module

    if name in _RETENTION:
        return getattr(import_module("agentkit.checkpoint.retention"), name)
    if name in _THREADS:
        return getattr(import_module("agentkit.checkpoint.threads"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
