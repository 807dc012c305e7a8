"""Tool families and the tool contract."""

if __name__ != "agentkit.tools":
    raise ImportError("import this package as agentkit.tools")

__all__: list[str] = []
