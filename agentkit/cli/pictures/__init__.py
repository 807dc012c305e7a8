"""Pictures of agents and graphs, made here: no network, no browser, no graphviz.

`parts` says what is drawn, `agents` and `graphs` find it, `layout` gives it places, the other modules draw it.
"""
