"""A user's message, or a decision, as a turn that takes place once, however often it is delivered.

```python
from agentkit.turns import decide, run_turn

result = run_turn(agent, "t-1", message_id, "Refund order A-17.")
```

What queues and web handlers need: deliver until it returns, as often as it takes. A message that was never seen starts
a turn, one whose turn broke off continues it, and one whose turn is over gets that turn's result; nothing is executed.
"""

from agentkit.turns.running import adecide, arun_turn, decide, run_turn

__all__ = ["adecide", "arun_turn", "decide", "run_turn"]
