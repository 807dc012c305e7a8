"""Shipped middleware, one per module."""

if __name__ != "agentkit.middleware":
    raise ImportError("import this package as agentkit.middleware")

__all__: list[str] = []
