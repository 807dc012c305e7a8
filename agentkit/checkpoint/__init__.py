"""Where threads are kept: SQLite, PostgreSQL or memory, from one URL.

```python
from agentkit import create_agent
from agentkit.checkpoint import open

saver = open("sqlite:///agent.db")
agent = create_agent(model, tools, checkpointer=saver)
```
"""

from agentkit.checkpoint.fence import EPOCH, Lease, Leases
from agentkit.checkpoint.opening import open
from agentkit.checkpoint.saver import Saver

__all__ = ["EPOCH", "Lease", "Leases", "Saver", "open"]
