"""A middleware-extensible ReAct agent framework on LangGraph."""
